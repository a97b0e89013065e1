//! Forward error correction: which one a link runs with.

macro_rules! modes {
    ($($mode:ident $code:literal $label:literal $help:literal;)+) => {
        /// A link's error correction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fec { $(#[doc = $help] $mode),+ }

        impl Fec {
            /// All of them.
            pub const ALL: &[Fec] = &[$(Fec::$mode),+];

            /// The one with this code in FECModeActive, if there is one.
            pub fn from_code(code: u16) -> Option<Fec> {
                match code {
                    $($code => Some(Fec::$mode),)+
                    _ => None,
                }
            }

            /// As the config file writes it.
            pub fn label(self) -> &'static str {
                match self { $(Fec::$mode => $label),+ }
            }
        }
    };
}

modes! {
    None 0 "none" "No correction.";
    FireCode 1 "fire-code" "Fire code, as FDR has it.";
    ReedSolomon 2 "rs" "Reed-Solomon.";
    LowLatency 3 "ll-rs" "Reed-Solomon with low latency.";
    ReedSolomon2 4 "rs2" "The second Reed-Solomon code.";
}
