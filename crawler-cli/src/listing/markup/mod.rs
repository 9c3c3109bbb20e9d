//! HTML as a stream of tags, texts and comments, for listings and for links; and the encodings of documents.

pub(crate) mod encoding;
pub(crate) mod html;
pub(crate) mod links;
pub(crate) mod references;
