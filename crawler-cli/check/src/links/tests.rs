//! Documents and their links: `line:column url "text"`.

use super::*;

/// Records what it is told.
#[derive(Default)]
struct Recorder {
    links: Vec<Link<'static>>,
    anchors: Vec<String>,
    faults: Vec<XmlError>,
}

impl Visitor for Recorder {
    fn link(&mut self, link: Link<'_>) {
        self.links.push(Link {
            url: Cow::Owned(link.url.into_owned()),
            text: Cow::Owned(link.text.into_owned()),
            line: link.line,
            column: link.column,
            kind: link.kind,
        });
    }

    fn wants_anchors(&self) -> bool {
        true
    }

    fn anchor(&mut self, anchor: &str) {
        self.anchors.push(anchor.to_owned());
    }

    fn fault(&mut self, fault: XmlError) {
        self.faults.push(fault);
    }
}

fn read(format: Format, bytes: &[u8]) -> Recorder {
    let mut recorder = Recorder::default();
    let _ = Document::new(format, bytes, None).read(&mut recorder);
    recorder
}

fn shown(links: &[Link<'_>]) -> Vec<String> {
    let shown = links.iter().map(|link| {
        let text = match link.text.is_empty() {
            true => String::new(),
            false => format!(" {:?}", link.text),
        };
        format!("{}:{} {}{text}", link.line, link.column, link.url)
    });
    shown.collect()
}

#[track_caller]
fn check(format: Format, document: &str, expected: &[&str]) {
    let links = read(format, document.as_bytes()).links;
    assert_eq!(shown(&links), expected, "{document}");
}

/// Follows a table: a document with `\n`, `\r` and `\t` written out, and its links in the lines below.
#[track_caller]
fn follow(format: Format, table: &str) {
    let mut lines = table.trim().lines().peekable();
    while let Some(document) = lines.next() {
        let document = document
            .replace("\\n", "\n")
            .replace("\\r", "\r")
            .replace("\\t", "\t");
        let links = std::iter::from_fn(|| lines.next_if(|line| line.starts_with(' ')));
        let expected: Vec<&str> = links.map(str::trim).collect();
        check(format, &document, &expected);
    }
}

#[test]
fn html() {
    follow(
        Format::Html,
        r#"
<a href="x">a  <b>b</b>\n c</a>
    1:10 x "a b c"
<A HREF = 'x'>a</A ><a\nhref=y>é</a>
    1:12 x "a"
    2:6 y "é"
<p>é<a class=c href=" x&amp;y \t">
    1:22 x&y
<a href='x' href='y'>1</a>
    1:10 x "1"
<a href=1>a<a href=2>b</a>c</a>
    1:9 1 "a"
    1:20 2 "b"
<a href=1><img src=i alt='an image'> b</a>
    1:9 1 "an image b"
    1:20 i "an image"
<img src=a srcset=' , b 1x,, c (x,y) 2x, x,y.webp 100w, data:image/png;base64,AA== 1x'>
    1:10 a
    1:20 b
    1:20 c
    1:20 x,y.webp
    1:20 data:image/png;base64,AA==
<picture><source srcset=b></picture><video poster=p src=v></video>
    1:25 b
    1:51 p
    1:57 v
<link rel=stylesheet href=s><link rel='dns-prefetch' href=//n><link rel=preconnect href=//n>
    1:27 s
<script src=s>document.write('<a href=no>')</script><a href=x></a>
    1:13 s
    1:61 x
<meta http-equiv=Refresh content="3; url='in-quotes'"><meta name=x content='0;url=no'>
    1:35 in-quotes
<template><a href=no><template></template><img src=no></template><a href=x>
    1:74 x
<!-- <a href=no> --><form action=no><button formaction=no></form><base href=no>
<noscript><img src=x></noscript><object data=o></object><embed src=e><iframe src=f></iframe>
    1:20 x
    1:46 o
    1:68 e
    1:82 f
<input src=no><input type=image src=i alt=go><track src=t><area href=a alt=A>
    1:37 i "go"
    1:57 t
    1:70 a "A"
<svg><use xlink:href='i.svg#a'/><image href=j /><a xlink:href=k>t</a></svg><blockquote cite=q>
    1:23 i.svg#a
    1:45 j
    1:63 k "t"
    1:93 q
<style>a { background: url(no) }</style><p style='background:url(no)'><a href=x>
    1:79 x
<a href=x>a
    1:9 x "a"
<a href=''></a><a href></a><a href=' '></a><a>
a\r\nb\rc<a href=x></a>
    3:10 x
<a href=x>a<br>b<script>no</script></a>
    1:9 x "a b"
<table background=b><td background=c>
    1:19 b
    1:36 c
<a href=mailto:a@b>m</a><a href='javascript:x()'>j</a>
    1:9 mailto:a@b "m"
    1:34 javascript:x() "j"
"#,
    );
}

#[test]
fn markdown() {
    follow(
        Format::Markdown,
        r#"
a [b *c*](d)
    1:3 d "b c"
é [b](<d e> 'title') ![i](j)
    1:3 d e "b"
    1:22 j "i"
[![alt](i.png)](x)
    1:1 x "alt"
    1:2 i.png "alt"
[a][r] [r][] [r] ![b][r]\n\n[r]: u 'title'
    1:1 u "a"
    1:8 u "r"
    1:14 u "r"
    1:18 u "b"
[a][missing] [missing]\n\n[unused]: u
<https://a.example/> <a@b.example>
    1:1 https://a.example/ "https://a.example/"
    1:22 mailto:a@b.example "a@b.example"
See https://a.example/b_c_d, (http://b.example/x(y)). www.c.example
    1:5 https://a.example/b_c_d "https://a.example/b_c_d"
    1:31 http://b.example/x(y) "http://b.example/x(y)"
    1:55 http://www.c.example "www.c.example"
**https://a.example/** _https://b.example_ https://c.example/_d_ https://e.example/a\_b
    1:3 https://a.example/ "https://a.example/"
    1:25 https://b.example "https://b.example"
    1:44 https://c.example/_d "https://c.example/_d"
    1:66 https://e.example/a_b "https://e.example/a\\_b"
https://a.example/?b=1&amp;c=2
    1:1 https://a.example/?b=1&c=2 "https://a.example/?b=1&amp;c=2"
`[a](b) https://no.example` ``<https://no.example>``
```\n[a](b) https://no.example\n```\n\n    [a](b) https://no.example\n\n[c](d)
    7:1 d "c"
<!-- [a](b) https://no.example\n\n[c](d) -->\n\n[e](f)
    5:1 f "e"
| a | b |\n|---|---|\n| [c](d) |https://e.example|
    3:3 d "c"
    3:11 https://e.example "https://e.example"
a[^1]\n\n[^1]: see [b](c)
    3:11 c "b"
> [a](b)\n> <a\n> href='c'>d</a>
    1:3 b "a"
    3:9 c "d"
- x\n  <div><a href='c'>d</a>\n  <img src='e'></div>
    2:17 c "d"
    3:13 e
<div>\n<a href="x">text</a>\n</div>\n\n[y](z)
    2:10 x "text"
    5:1 z "y"
a <a href='x'>*b* `c` https://no.example</a> [d](e)
    1:12 x "b c https://no.example"
    1:46 e "d"
<a href=in-x><img src=in-y></a> <a href='z'>
    1:9 in-x
    1:23 in-y
    1:42 z
---\nurl: https://no.example\n---\n[a](b)
    4:1 b "a"
+++\nurl = 'https://no.example'\n+++\n[a](b)
    4:1 b "a"
a\n\n---\n\nhttps://a.example\n\n---\n
    5:1 https://a.example "https://a.example"
[a](b\)c) [d](e&amp;f) [g](h(i))
    1:1 b)c "a"
    1:11 e&f "d"
    1:24 h(i) "g"
[a\nb](c)\r\n[d](e)
    1:1 c "a b"
    3:1 e "d"
[a]()  [b](#x)
    1:8 #x "b"
\[a](b) \https://a.example
    1:10 https://a.example "https://a.example"
[https://a.example](https://b.example)
    1:1 https://b.example "https://a.example"
# [a](b) https://c.example
    1:3 b "a"
    1:10 https://c.example "https://c.example"
1. [a]\n\n   [a]: b\n
    1:4 b "a"
see https://a.example/[b](c)
    1:5 https://a.example/ "https://a.example/"
    1:23 c "b"
"#,
    );
}

#[test]
fn xml() {
    follow(
        Format::Xml,
        "
<urlset><url><loc> http://h/a?b&amp;c\\n</loc><lastmod>2024</lastmod></url></urlset> <!-- http://no -->
    1:20 http://h/a?b&c
<?xml version='1.0'?>\\n<urlset><url><loc><![CDATA[http://h/d]]></loc></url></urlset>
    2:28 http://h/d
<urlset><url><image:image><image:loc>http://h/i</image:loc></image:image></url></urlset>
    1:38 http://h/i
<urlset><url><xhtml:link rel='alternate' hreflang='de' href='http://h/de'/></url></urlset>
    1:62 http://h/de
<sitemapindex><sitemap><loc>http://h/1.xml.gz</loc></sitemap></sitemapindex>
    1:29 http://h/1.xml.gz
<urlset><url><loc>http://h/?a&b=1</loc></url></urlset>
    1:19 http://h/?a&b=1
<rss><channel><link>http://h/</link><item><link>http://h/1</link><guid>http://no</guid></item></channel></rss>
    1:21 http://h/
    1:49 http://h/1
<rss><channel><atom:link href='http://h/f'/><item><enclosure url='http://h/e.mp3'/></item></channel></rss>
    1:32 http://h/f
    1:67 http://h/e.mp3
<feed xmlns='http://no'><link href='http://h/'/><entry><content src='http://h/c'/></entry></feed>
    1:37 http://h/
    1:70 http://h/c
<project><url>http://no</url></project>
",
    );
}

/// What is broken loses the entry where it stands; the entries before and after are read.
#[test]
fn a_sitemap_with_faults_loses_only_what_is_broken() {
    use XmlFault::{Entity, Malformed};
    let (loc, malformed, entity) = ("http://h/b", Some(Malformed), Some(Entity));
    let names = regex::Regex::new("(</?)(urlset|url|loc)\\b").expect("valid");
    for (broken, kept, fault) in [
        ("<loc>http://h/?a<b</loc></url>", None, malformed),
        ("<loc http://h/b</loc></url>", None, malformed),
        ("<loc>http://h/b</lok></url>", None, malformed),
        ("<loc>http://h/b</url>", None, malformed),
        ("<loc>http://h/b</loc>", Some(loc), malformed),
        ("<loc>http://h/b</loc></wrong></url>", Some(loc), malformed),
        ("<loc>h&nosuch;b</loc></url>", Some("h&nosuch;b"), entity),
        ("<loc>h&#xD800;b</loc></url>", Some("h&#xD800;b"), entity),
        ("<loc>h?b&c=1</loc></url>", Some("h?b&c=1"), None),
        ("<priority>1</priority></url><url/>", None, None),
        ("<loc/></url>", None, None),
    ] {
        // Programs write messages before the document.
        let all = format!(
            "Notice: wrong\n<?xml version='1.0'?>\n<urlset><url>\n<loc>http://h/before</loc></url><url>{broken}\
             <url>\n<loc>http://h/after</loc></url></urlset>"
        );
        for prefix in ["", "m:"] {
            let all = names.replace_all(&all, format!("${{1}}{prefix}$2"));
            let mut recorder = Recorder::default();
            let read = Document::new(Format::Xml, all.as_bytes(), None).read(&mut recorder);
            assert_eq!(read, Ok(()), "{all}");
            let urls: Vec<_> = recorder.links.iter().map(|link| &*link.url).collect();
            let (before, after) = ("http://h/before", "http://h/after");
            let expected = [Some(before), kept, Some(after)];
            let expected: Vec<_> = expected.into_iter().flatten().collect();
            assert_eq!(urls, expected, "{all}");
            let faults: Vec<_> = recorder.faults.iter().map(|error| error.fault).collect();
            assert_eq!(faults.first(), fault.as_ref(), "{all}");
            let line = recorder.faults.first().map(|error| error.line);
            assert_eq!(line, fault.map(|_| 4), "{all}");
        }
    }
    let many = "<url><loc>http://h/a</loc></url>".repeat(50_001);
    let recorder = read(Format::Xml, format!("<urlset>{many}</urlset>").as_bytes());
    let faults: Vec<_> = recorder.faults.iter().map(|error| error.fault).collect();
    assert_eq!(recorder.links.len(), 50_001);
    assert_eq!(faults, [XmlFault::TooMany]);
}

#[test]
fn a_cut_sitemap_gives_the_links_before_and_an_error() {
    let sitemap =
        "<urlset>\n<url><loc>http://h/a</loc></url>\n<url><loc>http://h/b</loc></url>\n</urlset>";
    let read = |document: &str| {
        let mut recorder = Recorder::default();
        let result = Document::new(Format::Xml, document.as_bytes(), None).read(&mut recorder);
        (recorder.links.len(), result)
    };
    assert_eq!(read(sitemap), (2, Ok(())));
    for cut in 0..sitemap.len() - 1 {
        let (links, result) = read(&sitemap[..cut]);
        let whole = sitemap[..cut].matches("</loc>").count();
        assert_eq!(links, whole, "{cut}");
        let fault = result.map_err(|error| error.fault);
        assert_eq!(fault, Err(XmlFault::Cut), "{cut}");
    }
    let (_, result) = read(&"<urlset>".repeat(300));
    assert_eq!(result.map_err(|error| error.fault), Err(XmlFault::TooDeep));
}

#[test]
fn comments_switch_links_off() {
    for tool in ["markdown-link-check", "crawler-check"] {
        let document = "[a](a)\n<!-- T-disable -->\n[b](b) <img src=b>\n<!-- T-enable -->\n[c](c) <!-- T-disable-line --> [d](d)\n\
            <!-- T-disable-next-line -->\n[e](e)\n[f](f)\n\n```\n<!-- T-disable -->\n```\n[g](g)\n\n[h](h)\n<!--T-disable-->\n[i](i)";
        check(
            Format::Markdown,
            &document.replace('T', tool),
            &["1:1 a \"a\"", "8:1 f \"f\"", "13:1 g \"g\"", "15:1 h \"h\""],
        );
        let document = "<a href=a></a><!-- T-disable --><a href=b></a>\n<!-- T-enable --><a href=c></a>\n\
            <!-- T-disable-next-line -->\n<a href=d></a>\n<a href=e></a>\n<a href=f></a><!-- T-disable-line -->";
        let links = read(Format::Html, document.replace('T', tool).as_bytes()).links;
        let urls: Vec<&str> = links.iter().map(|link| &*link.url).collect();
        assert_eq!(urls, ["a", "c", "e"]);
    }
}

#[test]
fn anchors() {
    let recorder = read(
        Format::Html,
        b"<p id=x><a name='y z'></a><a id=i name=n><svg><title>no</title></svg><p name=no>\
        <template><p id=no></template><!-- id=no -->",
    );
    assert_eq!(recorder.anchors, ["x", "y z", "i", "n"]);
    let recorder = read(Format::Markdown, "# Getting *Started* `now`!\n\nSetext\n---\n\n## Getting Started now\n\n### A [link](x) ![image](y)\n\n\
        #### Named {#id .class}\n\n<a name=\"raw\"></a><div id='d'>\n\n[^n]: foot\n\n## B <a id=inner></a>\n\nx[^n] ~~\n\n```\n# no\n```\n".as_bytes());
    let anchors = "getting-started-now setext getting-started-now-1 a-link- id named raw d fn-n inner b- fnref-n";
    assert_eq!(recorder.anchors.join(" "), anchors);
}

#[test]
fn the_base_is_the_first_one() {
    let base = |format, document: &str| Document::new(format, document.as_bytes(), None).base();
    let first = base(
        Format::Html,
        "<BASE target=x><base href=' /a&amp;b '><base href=c>",
    );
    assert_eq!(first.as_deref(), Some("/a&b"));
    let none = "<!-- <base href=a> --><template><base href=b></template><basefont href=c>";
    assert_eq!(base(Format::Html, none), None);
    assert_eq!(base(Format::Markdown, "<base href=a>"), None);
}

#[test]
fn kinds() {
    let kinds = |format, document: &str| {
        let links = read(format, document.as_bytes()).links;
        links.iter().map(|link| link.kind).collect::<Vec<_>>()
    };
    let page = "<a href=a><area href=a><iframe src=a></iframe><link rel=next href=a>\
        <meta http-equiv=refresh content='0;a'>";
    assert_eq!(kinds(Format::Html, page), [Kind::Document; 5]);
    let parts = "<link rel='shortcut icon' href=a><img src=a>";
    assert_eq!(kinds(Format::Html, parts), [Kind::Embedded; 2]);
    let markdown = kinds(Format::Markdown, "[a](b) ![c](d)");
    assert_eq!(markdown, [Kind::Document, Kind::Embedded]);
    let index = "<sitemapindex><sitemap><loc>a</loc></sitemap></sitemapindex>";
    assert_eq!(kinds(Format::Xml, index), [Kind::Sitemap]);
}

#[test]
fn encodings() {
    let urls = |format, bytes: &[u8], charset| {
        let mut found = Vec::new();
        let document = Document::new(format, bytes, charset);
        let result = document.read(&mut |link: Link<'_>| {
            found.push(format!("{}:{} {}", link.line, link.column, link.url))
        });
        assert_eq!(result, Ok(()));
        found
    };
    let utf16 = |text: &str| -> Vec<u8> {
        let units = text.encode_utf16().flat_map(u16::to_le_bytes);
        [0xFF, 0xFE].into_iter().chain(units).collect()
    };
    let html = |bytes: &[u8]| urls(Format::Html, bytes, None);
    assert_eq!(html(b"\xEF\xBB\xBF<a href=x>"), ["1:9 x"]);
    let emoji = utf16("\u{1F600}\n\u{1F600}<a href=\u{e9}>");
    assert_eq!(html(&emoji), ["2:10 \u{e9}"]);
    let meta = b"<meta charset=windows-1252><a href=\xE9>";
    assert_eq!(html(meta), ["1:36 \u{e9}"]);
    let equiv = b"<meta http-equiv=Content-Type content='text/html; charset=koi8-r'><a href=\xC1>";
    assert_eq!(html(equiv), ["1:75 \u{430}"]);
    assert_eq!(html(b"<meta charset=utf-16><a href=x>"), ["1:30 x"]);
    assert_eq!(
        html(b"\xF0\x9F<a href=\xFFx\0y>"),
        ["1:10 \u{FFFD}x\u{FFFD}y"]
    );
    let markdown = |charset| urls(Format::Markdown, b"\xE9\xE9 <http://h/\xE9>", Some(charset));
    assert_eq!(markdown("iso-8859-1"), ["1:4 http://h/\u{e9}"]);
    assert_eq!(markdown("no such label"), ["1:4 http://h/\u{FFFD}"]);
    let xml = b"\n<?xml version='1.0' encoding='latin1'?><urlset><url><loc>http://h/\xE9</loc></url></urlset>";
    assert_eq!(urls(Format::Xml, xml, None), ["2:58 http://h/\u{e9}"]);
}

#[test]
fn hostile_documents_end_soon() {
    let many = |text: &str| text.repeat(50_000);
    let inlines = "[|![|[a](|[a][|*|`|`a|&|<|<!--|<!-- --!|<a href=x |<a href=\"|<a href=x>|http://a(|http://a |www.a ";
    let blocks =
        "> |- |<div>|<template>|<svg>|<script><!--|</script|<loc>|# a\n|[a]: b\n|[^a]: b\n|\r|\0";
    for document in inlines
        .split('|')
        .chain(blocks.split('|'))
        .chain(["|", "|-|\n"])
    {
        let document = many(document);
        for format in [Format::Markdown, Format::Html, Format::Xml] {
            // Quadratic time would be many minutes.
            let _ = read(format, document.as_bytes());
        }
    }
    let long = format!(
        "<a href=\"{}\"></a><a href=y>{}</a>",
        "x".repeat(1 << 20),
        "y ".repeat(1 << 20)
    );
    let links = read(Format::Html, long.as_bytes()).links;
    assert_eq!((links.len(), links[0].url.len()), (2, 1 << 20));
    assert_eq!(links[1].text, "y ".repeat(TEXT_BYTES / 2).trim_end());
}

#[test]
fn what_is_held_is_bounded_and_nothing_is_lost() {
    let open = format!("<a href=first>{}", "<img src=i>".repeat(1000));
    let links = read(Format::Html, open.as_bytes()).links;
    assert_eq!(links.len(), 1001);
    assert_eq!(links[0].url, "first");
    let nested = format!("{}a{}", "![".repeat(1000), "](i)".repeat(1000));
    assert_eq!(read(Format::Markdown, nested.as_bytes()).links.len(), 1000);
}
