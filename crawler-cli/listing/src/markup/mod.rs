//! HTML as a stream of tags, texts and comments, for listings and for links; and the encodings of documents.

pub mod encoding;
pub mod html;
pub mod links;
pub mod references;
