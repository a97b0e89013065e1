//! What `top` requests from its source.

use ib_fabric::topology::LinkId;

display_text::labeled_enum! {
    /// The views.
    #[derive(Default)]
    pub enum Tab {
        #[default]
        Cables, "Cables", "The worst cables.";
        Traffic, "Traffic", "The busiest links.";
        Congestion, "Congestion", "Congestion regions.";
        Events, "Events", "The latest events.";
    }
}

/// A link whose ports are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// By fabric and id.
    Link(String, LinkId),
    /// By one of its ports.
    Port(String),
}

/// A request to the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub tab: Tab,
    /// The ports of this link, in place of the view.
    pub target: Option<Target>,
    /// The text that selects rows.
    pub filter: String,
    /// Only this fabric.
    pub fabric: Option<String>,
    /// Nothing is requested.
    pub is_paused: bool,
}
