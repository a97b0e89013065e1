//! The models of `/api/v1/modules`.

use super::{Module, PortName, ReportedBer};

models! {
    /// The cables and modules of all fabrics.
    pub struct Modules {
        /// One entry per fabric.
        pub fabrics: Vec<FabricModules>,
    }

    /// The cables and modules of a fabric.
    pub struct FabricModules {
        /// The fabric's name.
        pub fabric: String,
        /// When its latest sweep ended (RFC 3339); null before the first.
        pub swept_at: Option<String>,
        /// The ports that report one, ordered by node name and port. A cable is listed at both ends.
        pub modules: Vec<PortModule>,
    }

    /// The cable or module of a port.
    pub struct PortModule {
        /// The identity of the port.
        #[serde(flatten)]
        pub name: PortName,
        /// The ID of its link.
        pub link: Option<String>,
        /// The cable or module.
        #[serde(flatten)]
        pub module: Module,
        /// The bit error ratios that the device reports.
        pub reported_ber: Option<ReportedBer>,
    }
}
