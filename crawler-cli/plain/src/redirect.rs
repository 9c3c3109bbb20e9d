//! A redirect as it is reported.

/// A redirect that was followed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Redirect {
    /// Its status.
    pub status: u16,
    /// The URL that it leads to.
    pub url: String,
}
