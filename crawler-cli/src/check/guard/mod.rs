//! Recognises failures that are not the fault of the URLs. Pure: time is an argument.

/// A guard that is on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Guard {
    /// The own network fails.
    OwnNetwork,
    /// A host, or a content delivery network, turned negative as a whole.
    HostFlip,
}

impl Guard {
    /// The name in metrics and JSON output: `self` or `host`.
    pub fn name(self) -> &'static str {
        match self {
            Self::OwnNetwork => "self",
            Self::HostFlip => "host",
        }
    }
}
