//! The server that wrote a page: how its pages are recognised, whether they mark directories, and how they end.

use serde::{Deserialize, Serialize};
use std::fmt;

use memchr::memmem;

/// The kind of a listing: the server or the protocol that it comes from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub enum Shape {
    /// Apache httpd's mod_autoindex, in all its styles.
    Apache,
    /// nginx's autoindex module, in all its formats.
    Nginx,
    /// nginx with the fancyindex module.
    Fancyindex,
    /// lighttpd's mod_dirlisting.
    Lighttpd,
    /// Caddy's file server, HTML or JSON.
    Caddy,
    /// Python's http.server.
    Python,
    /// Microsoft's IIS.
    Iis,
    /// Jetty's DefaultServlet.
    Jetty,
    /// ACME's mini_httpd. It does not mark directories.
    MiniHttpd,
    /// webfsd
    Webfs,
    /// `ListBucketResult` of S3 and of compatible servers.
    S3,
    /// `EnumerationResults` of Azure Blob Storage.
    Azure,
    /// Any other page: its entries are all links that pass the child test.
    Generic,
    /// A web page of which all links are followed.
    Page,
}

impl Shape {
    /// The lower-case name, as in JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Apache => "apache",
            Self::Nginx => "nginx",
            Self::Fancyindex => "fancyindex",
            Self::Lighttpd => "lighttpd",
            Self::Caddy => "caddy",
            Self::Python => "python",
            Self::Iis => "iis",
            Self::Jetty => "jetty",
            Self::MiniHttpd => "mini-httpd",
            Self::Webfs => "webfs",
            Self::S3 => "s3",
            Self::Azure => "azure",
            Self::Generic => "generic",
            Self::Page => "page",
        }
    }

    /// Recognises an HTML page by text that its server always writes near the beginning.
    pub(super) fn of_html(body: &[u8]) -> Self {
        let start = &body[..body.len().min(SIGNATURE_WINDOW)];
        let has = |needle: &str| memmem::find(start, needle.as_bytes()).is_some();
        if has("</h1><hr><pre><a href=\"../\">../</a>") {
            Self::Nginx
        } else if has("//W3C//DTD ")
            && has("<title>Index of /")
            && (has("<h1>Index of /") || has("<h1 id=\"indextitle\">Index of /"))
        {
            Self::Apache
        } else if has("<title>Directory listing for ") && has("<h1>Directory listing for ") {
            Self::Python
        } else if has("<table id=\"list\"><thead><tr><th") {
            Self::Fancyindex
        } else if has("<table summary=\"Directory Listing\" ") {
            Self::Lighttpd
        } else if has("<h1 class=\"title\">Directory: ") && has("class=\"listing\"") {
            Self::Jetty
        } else if has("<h4>Index of ./") && has("<pre>") {
            Self::MiniHttpd
        } else if has("<b>access      user      group     date             size  name</b>") {
            Self::Webfs
        } else if has("</H1><hr>") && has("<pre>") && has("<A HREF=\"") {
            Self::Iis
        } else if memmem::find(body, b"?sort=namedirfirst&").is_some() {
            // Caddy's style sheets and icons come first.
            Self::Caddy
        } else {
            Self::Generic
        }
    }

    /// Whether the server always marks a directory with a final `/`. If so, a name without it is a file.
    pub(super) fn marks_directories(self) -> bool {
        !matches!(self, Self::MiniHttpd | Self::Generic)
    }

    /// The text that ends a complete page, in each of the formats of the shape. For messages.
    pub fn end(self) -> &'static str {
        match self {
            Self::Nginx => "</html>, </list> or ]",
            Self::Caddy => "</html> or ]",
            Self::Webfs => "</body>",
            Self::S3 => "</ListBucketResult>",
            Self::Azure => "</EnumerationResults>",
            _ => "</html>",
        }
    }

    /// The last end tag of a complete HTML page.
    pub(super) fn last_tag(self) -> &'static [u8] {
        match self {
            Self::Webfs => b"body",
            _ => b"html",
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many bytes of a page are searched for a signature. Most servers write at most a style sheet before it.
const SIGNATURE_WINDOW: usize = 4096;
