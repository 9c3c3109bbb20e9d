//! The source of a URL set: the keys `urls` and `sitemap`, of which a set has at most one.

use std::path::PathBuf;

use toml::Spanned;
use toml::de::DeValue;

use super::entries::Source;
use super::kinds::{FilePath, Scalar, WebUrl};
use super::reader::{Kind, Reader};

/// `urls = "FILE"`
pub(super) struct ListFile;

/// `sitemap = "URL"`
pub(super) struct Sitemap;

impl Kind for ListFile {
    type Value = Source;
    const ALLOWED: &'static str = <FilePath as Scalar>::ALLOWED;

    fn read(into: &mut Source, reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) {
        let mut path = PathBuf::new();
        <FilePath as Kind>::read(&mut path, reader, value);
        *into = Source::File(path);
    }

    fn show(value: &Source) -> Option<String> {
        match value {
            Source::File(path) => <FilePath as Scalar>::show(path),
            Source::Sitemap(_) | Source::Submitted => None,
        }
    }
}

impl Kind for Sitemap {
    type Value = Source;
    const ALLOWED: &'static str = <WebUrl as Scalar>::ALLOWED;

    fn read(into: &mut Source, reader: &mut Reader<'_>, value: &Spanned<DeValue<'_>>) {
        if matches!(into, Source::File(_)) {
            reader.wrong(value.span(), "a set has one source: urls or sitemap");
        }
        match WebUrl::parse(value.get_ref(), reader.folder()) {
            Ok(url) => *into = Source::Sitemap(url),
            Err(why) => reader.wrong(
                value.span(),
                &format!("{why}; allowed: {}", <Self as Kind>::ALLOWED),
            ),
        }
    }

    fn show(value: &Source) -> Option<String> {
        match value {
            Source::Sitemap(url) => <WebUrl as Scalar>::show(url),
            Source::File(_) | Source::Submitted => None,
        }
    }
}
