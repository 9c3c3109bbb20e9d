//! HTML as a stream of tags, texts and comments, for listings and for links.

pub(crate) mod html;
pub(crate) mod links;
pub(crate) mod references;
