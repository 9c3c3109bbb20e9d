//! What holds for one call instead of the client's settings.

use super::{Redirects, Retry, Timeouts};
use crate::proto::Limits;

#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) timeouts: Option<Timeouts>,
    pub(crate) limits: Option<Limits>,
    pub(crate) retry: Option<Retry>,
    pub(crate) redirects: Option<Redirects>,
}
