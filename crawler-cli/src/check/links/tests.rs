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

#[test]
fn html() {
    let check = |document, expected: &[&str]| check(Format::Html, document, expected);
    check("<a href=\"x\">a  <b>b</b>\n c</a>", &["1:10 x \"a b c\""]);
    check(
        "<A HREF = 'x'>a</A ><a\nhref=y>é</a>",
        &["1:12 x \"a\"", "2:6 y \"é\""],
    );
    check("<p>é<a class=c href=\" x&amp;y \t\">", &["1:22 x&y"]);
    check("<a href='x' href='y'>1</a>", &["1:10 x \"1\""]);
    check(
        "<a href=1>a<a href=2>b</a>c</a>",
        &["1:9 1 \"a\"", "1:20 2 \"b\""],
    );
    check(
        "<a href=1><img src=i alt='an image'> b</a>",
        &["1:9 1 \"an image b\"", "1:20 i \"an image\""],
    );
    check(
        "<img src=a srcset='b 1x, c 2x'>",
        &["1:10 a", "1:20 b", "1:20 c"],
    );
    check(
        "<picture><source srcset=b></picture><video poster=p src=v></video>",
        &["1:25 b", "1:51 p", "1:57 v"],
    );
    check(
        "<link rel=stylesheet href=s><link rel='dns-prefetch' href=//n><link rel=preconnect href=//n>",
        &["1:27 s"],
    );
    check(
        "<script src=s>document.write('<a href=no>')</script><a href=x></a>",
        &["1:13 s", "1:61 x"],
    );
    check(
        "<meta http-equiv=Refresh content=\"3; url='in-quotes'\"><meta name=x content='0;url=no'>",
        &["1:35 in-quotes"],
    );
    check(
        "<template><a href=no><template></template><img src=no></template><a href=x>",
        &["1:74 x"],
    );
    check(
        "<!-- <a href=no> --><form action=no><button formaction=no></form><base href=no>",
        &[],
    );
    check(
        "<noscript><img src=x></noscript><object data=o></object><embed src=e><iframe src=f></iframe>",
        &["1:20 x", "1:46 o", "1:68 e", "1:82 f"],
    );
    check(
        "<input src=no><input type=image src=i alt=go><track src=t><area href=a alt=A>",
        &["1:37 i \"go\"", "1:57 t", "1:70 a \"A\""],
    );
    check(
        "<svg><use xlink:href='i.svg#a'/><image href=j /><a xlink:href=k>t</a></svg><blockquote cite=q>",
        &["1:23 i.svg#a", "1:45 j", "1:63 k \"t\"", "1:93 q"],
    );
    check(
        "<style>a { background: url(no) }</style><p style='background:url(no)'><a href=x>",
        &["1:79 x"],
    );
    check(
        "<title><a href=no></title><textarea><a href=no></textarea><xmp><a href=no></xmp><a href=x>",
        &["1:89 x"],
    );
    check("<a href=x>a", &["1:9 x \"a\""]);
    check("<a href=x", &[]);
    check("<a href=\"x", &[]);
    check("<a href=''></a><a href></a><a href=' '></a><a>", &[]);
    check("a\r\nb\rc<a href=x></a>", &["3:10 x"]);
    check(
        "<a href=x>a<br>b<script>no</script></a>",
        &["1:9 x \"a b\""],
    );
    check(
        "<table background=b><td background=c>",
        &["1:19 b", "1:36 c"],
    );
    check(
        "<a href=mailto:a@b>m</a><a href='javascript:x()'>j</a>",
        &["1:9 mailto:a@b \"m\"", "1:34 javascript:x() \"j\""],
    );
}

#[test]
fn markdown() {
    let check = |document, expected: &[&str]| check(Format::Markdown, document, expected);
    check("a [b *c*](d)", &["1:3 d \"b c\""]);
    check(
        "é [b](<d e> 'title') ![i](j)",
        &["1:3 d e \"b\"", "1:22 j \"i\""],
    );
    check(
        "[![alt](i.png)](x)",
        &["1:1 x \"alt\"", "1:2 i.png \"alt\""],
    );
    check(
        "[a][r] [r][] [r] ![b][r]\n\n[r]: u 'title'",
        &["1:1 u \"a\"", "1:8 u \"r\"", "1:14 u \"r\"", "1:18 u \"b\""],
    );
    check("[a][missing] [missing]\n\n[unused]: u", &[]);
    check(
        "<https://a.example/> <a@b.example>",
        &[
            "1:1 https://a.example/ \"https://a.example/\"",
            "1:22 mailto:a@b.example \"a@b.example\"",
        ],
    );
    check(
        "See https://a.example/b_c_d, (http://b.example/x(y)). www.c.example",
        &[
            "1:5 https://a.example/b_c_d \"https://a.example/b_c_d\"",
            "1:31 http://b.example/x(y) \"http://b.example/x(y)\"",
            "1:55 http://www.c.example \"www.c.example\"",
        ],
    );
    check(
        "**https://a.example/** _https://b.example_ https://c.example/_d_ https://e.example/a\\_b",
        &[
            "1:3 https://a.example/ \"https://a.example/\"",
            "1:25 https://b.example \"https://b.example\"",
            "1:44 https://c.example/_d \"https://c.example/_d\"",
            "1:66 https://e.example/a_b \"https://e.example/a\\\\_b\"",
        ],
    );
    check(
        "https://a.example/?b=1&amp;c=2",
        &["1:1 https://a.example/?b=1&c=2 \"https://a.example/?b=1&amp;c=2\""],
    );
    check("`[a](b) https://no.example` ``<https://no.example>``", &[]);
    check(
        "```\n[a](b) https://no.example\n```\n\n    [a](b) https://no.example\n\n[c](d)",
        &["7:1 d \"c\""],
    );
    check(
        "<!-- [a](b) https://no.example\n\n[c](d) -->\n\n[e](f)",
        &["5:1 f \"e\""],
    );
    check(
        "| a | b |\n|---|---|\n| [c](d) |https://e.example|",
        &[
            "3:3 d \"c\"",
            "3:11 https://e.example \"https://e.example\"",
        ],
    );
    check("a[^1]\n\n[^1]: see [b](c)", &["3:11 c \"b\""]);
    check(
        "> [a](b)\n> <a\n> href='c'>d</a>",
        &["1:3 b \"a\"", "3:9 c \"d\""],
    );
    check(
        "- x\n  <div><a href='c'>d</a>\n  <img src='e'></div>",
        &["2:17 c \"d\"", "3:13 e"],
    );
    check(
        "<div>\n<a href=\"x\">text</a>\n</div>\n\n[y](z)",
        &["2:10 x \"text\"", "5:1 z \"y\""],
    );
    check(
        "a <a href='x'>*b* `c` https://no.example</a> [d](e)",
        &["1:12 x \"b c https://no.example\"", "1:46 e \"d\""],
    );
    check(
        "<a href=in-x><img src=in-y></a> <a href='z'>",
        &["1:9 in-x", "1:23 in-y", "1:42 z"],
    );
    check(
        "---\nurl: https://no.example\n---\n[a](b)",
        &["4:1 b \"a\""],
    );
    check(
        "+++\nurl = 'https://no.example'\n+++\n[a](b)",
        &["4:1 b \"a\""],
    );
    check(
        "a\n\n---\n\nhttps://a.example\n\n---\n",
        &["5:1 https://a.example \"https://a.example\""],
    );
    check(
        "[a](b\\)c) [d](e&amp;f) [g](h(i))",
        &["1:1 b)c \"a\"", "1:11 e&f \"d\"", "1:24 h(i) \"g\""],
    );
    check("[a\nb](c)\r\n[d](e)", &["1:1 c \"a b\"", "3:1 e \"d\""]);
    check("[a]()  [b](#x)", &["1:8 #x \"b\""]);
    check(
        "\\[a](b) \\https://a.example",
        &["1:10 https://a.example \"https://a.example\""],
    );
    check(
        "[https://a.example](https://b.example)",
        &["1:1 https://b.example \"https://a.example\""],
    );
    check(
        "# [a](b) https://c.example",
        &[
            "1:3 b \"a\"",
            "1:10 https://c.example \"https://c.example\"",
        ],
    );
    check("1. [a]\n\n   [a]: b\n", &["1:4 b \"a\""]);
    check(
        "see https://a.example/[b](c)",
        &[
            "1:5 https://a.example/ \"https://a.example/\"",
            "1:23 c \"b\"",
        ],
    );
}

#[test]
fn xml() {
    let check = |document, expected: &[&str]| check(Format::Xml, document, expected);
    check(
        "<?xml version='1.0'?>\n<urlset><url><loc> http://h/a?b&amp;c\n</loc><lastmod>2024</lastmod></url>\
        <url><loc><![CDATA[http://h/d]]></loc><image:image><image:loc>http://h/i</image:loc></image:image>\
        <xhtml:link rel='alternate' hreflang='de' href='http://h/de'/></url></urlset> <!-- http://no -->",
        &[
            "2:20 http://h/a?b&c",
            "3:55 http://h/d",
            "3:98 http://h/i",
            "3:182 http://h/de",
        ],
    );
    check(
        "<sitemapindex><sitemap><loc>http://h/1.xml.gz</loc></sitemap></sitemapindex>",
        &["1:29 http://h/1.xml.gz"],
    );
    check(
        "<urlset><url><loc>http://h/?a&b=1</loc></url></urlset>",
        &["1:19 http://h/?a&b=1"],
    );
    check(
        "<rss><channel><link>http://h/</link><atom:link href='http://h/f'/><item><link>http://h/1</link>\
        <enclosure url='http://h/e.mp3'/><guid>http://no</guid></item></channel></rss>",
        &[
            "1:21 http://h/",
            "1:54 http://h/f",
            "1:79 http://h/1",
            "1:112 http://h/e.mp3",
        ],
    );
    check(
        "<feed xmlns='http://no'><link href='http://h/'/><entry><content src='http://h/c'/></entry></feed>",
        &["1:37 http://h/", "1:70 http://h/c"],
    );
    check("<project><url>http://no</url></project>", &[]);
}

/// What is broken loses the entry where it stands; the entries before and after are read.
#[test]
fn a_sitemap_with_faults_loses_only_what_is_broken() {
    use XmlFault::{Entity, Malformed};
    for (broken, kept, fault) in [
        ("<url><loc>http://h/?a<b</loc></url>", None, Some(Malformed)),
        ("<url><loc http://h/b</loc></url>", None, Some(Malformed)),
        ("<url><loc>http://h/b</lok></url>", None, Some(Malformed)),
        ("<url><loc>http://h/b</url>", None, Some(Malformed)),
        (
            "<url><loc>http://h/b</loc>",
            Some("http://h/b"),
            Some(Malformed),
        ),
        (
            "<url><loc>http://h/b</loc></wrong></url>",
            Some("http://h/b"),
            Some(Malformed),
        ),
        (
            "<url><loc>http://h/&nosuch;b</loc></url>",
            Some("http://h/&nosuch;b"),
            Some(Entity),
        ),
        (
            "<url><loc>http://h/&#xD800;b</loc></url>",
            Some("http://h/&#xD800;b"),
            Some(Entity),
        ),
        (
            "<url><loc>http://h/?b&c=1</loc></url>",
            Some("http://h/?b&c=1"),
            None,
        ),
        ("<url><loc>b</loc></url>", Some("b"), None),
        ("<url/><url><priority>1</priority></url>", None, None),
        ("<url><loc/></url>", None, None),
    ] {
        for prefix in ["", "m:"] {
            let around = |name: &str| format!("<url>\n<loc>http://h/{name}</loc></url>");
            let all = format!(
                "<urlset>{}{broken}{}</urlset>",
                around("before"),
                around("after")
            );
            let all = ["urlset", "url>", "url/", "loc"]
                .iter()
                .fold(all, |all, name| {
                    let (open, close) = (format!("<{name}"), format!("</{name}"));
                    let all = all.replace(&open, &format!("<{prefix}{name}"));
                    all.replace(&close, &format!("</{prefix}{name}"))
                });
            // Programs write messages before the document.
            let all = format!("Notice: wrong\n<?xml version='1.0'?>\n{all}");
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
            assert_eq!(
                recorder.faults.first().map(|error| error.line),
                fault.map(|_| 4),
                "{all}"
            );
        }
    }
    let many = "<url><loc>http://h/a</loc></url>".repeat(50_001);
    let recorder = read(Format::Xml, format!("<urlset>{many}</urlset>").as_bytes());
    let faults: Vec<_> = recorder.faults.iter().map(|error| error.fault).collect();
    assert_eq!(
        (recorder.links.len(), faults),
        (50_001, vec![XmlFault::TooMany])
    );
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
        assert_eq!(
            result.map_err(|error| error.fault),
            Err(XmlFault::Cut),
            "{cut}"
        );
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
    assert_eq!(
        recorder.anchors,
        [
            "getting-started-now",
            "setext",
            "getting-started-now-1",
            "a-link-",
            "id",
            "named",
            "raw",
            "d",
            "fn-n",
            "inner",
            "b-",
            "fnref-n",
        ]
    );
}

#[test]
fn the_base_is_the_first_one() {
    let base = |html: &str| Document::new(Format::Html, html.as_bytes(), None).base();
    assert_eq!(
        base("<BASE target=x><base href=' /a&amp;b '><base href=c>").as_deref(),
        Some("/a&b")
    );
    assert_eq!(
        base("<!-- <base href=a> --><template><base href=b></template><basefont href=c>"),
        None
    );
    assert_eq!(
        Document::new(Format::Markdown, b"<base href=a>", None).base(),
        None
    );
}

#[test]
fn kinds() {
    let kinds = |format, document: &str| {
        let links = read(format, document.as_bytes()).links;
        links.iter().map(|link| link.kind).collect::<Vec<_>>()
    };
    use Kind::{Document, Embedded, Sitemap};
    assert_eq!(
        kinds(
            Format::Html,
            "<a href=a><area href=a><iframe src=a></iframe><link rel=next href=a><link rel='shortcut icon' href=a><img src=a>\
        <meta http-equiv=refresh content='0;a'>"
        ),
        [
            Document, Document, Document, Document, Embedded, Embedded, Document
        ][..]
    );
    assert_eq!(
        kinds(Format::Markdown, "[a](b) ![c](d)"),
        [Document, Embedded]
    );
    assert_eq!(
        kinds(
            Format::Xml,
            "<sitemapindex><sitemap><loc>a</loc></sitemap></sitemapindex>"
        ),
        [Sitemap]
    );
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
    assert_eq!(
        urls(Format::Html, b"\xEF\xBB\xBF<a href=x>", None),
        ["1:9 x"]
    );
    assert_eq!(
        urls(
            Format::Html,
            &utf16("\u{1F600}\n\u{1F600}<a href=\u{e9}>"),
            None
        ),
        ["2:10 \u{e9}"]
    );
    assert_eq!(
        urls(
            Format::Markdown,
            b"\xE9\xE9 <http://h/\xE9>",
            Some("iso-8859-1")
        ),
        ["1:4 http://h/\u{e9}"]
    );
    assert_eq!(
        urls(
            Format::Markdown,
            b"\xE9\xE9 <http://h/>",
            Some("no such label")
        ),
        ["1:4 http://h/"]
    );
    assert_eq!(
        urls(
            Format::Html,
            b"<meta charset=windows-1252><a href=\xE9>",
            None
        ),
        ["1:36 \u{e9}"]
    );
    assert_eq!(
        urls(
            Format::Html,
            b"<meta http-equiv=Content-Type content='text/html; charset=koi8-r'><a href=\xC1>",
            None
        ),
        ["1:75 \u{430}"]
    );
    assert_eq!(
        urls(Format::Html, b"<meta charset=utf-16><a href=x>", None),
        ["1:30 x"]
    );
    assert_eq!(urls(Format::Xml, b"\n<?xml version='1.0' encoding='latin1'?><urlset><url><loc>http://h/\xE9</loc></url></urlset>", None),
        ["2:58 http://h/\u{e9}"]);
    assert_eq!(
        urls(Format::Html, b"\xF0\x9F<a href=\xFFx\0y>", None),
        ["1:10 \u{FFFD}x\u{FFFD}y"]
    );
}

#[test]
fn hostile_documents_end_soon() {
    let many = |text: &str| text.repeat(50_000);
    for document in [
        "[",
        "![",
        "> ",
        ">",
        "<a href=x ",
        "<",
        "<!-- --!",
        "<!--",
        "&",
        "&#",
        "(",
        "*",
        "_",
        "`",
        "`a",
        "<div>",
        "<template>",
        "<svg>",
        "[a](",
        "[a][",
        "http://a(",
        "http://a ",
        "www.a ",
        "www.",
        "<a href=\"",
        "<script><!--",
        "</script",
        "<a href=x>",
        "\\",
        "|",
        "- ",
        "<loc>",
        "&amp;",
        "\0",
        "\u{202e}",
        "\r",
        "~",
        "# a\n",
        "[a]: b\n",
        "[^a]: b\n",
        "|-|\n",
        "data:\"",
        "{",
    ] {
        let document = many(document);
        for format in [Format::Markdown, Format::Html, Format::Xml] {
            let started = std::time::Instant::now();
            let _ = read(format, document.as_bytes());
            let took = started.elapsed();
            // Quadratic time would be many minutes.
            assert!(
                took < std::time::Duration::from_secs(60),
                "{format:?} {:?} {took:?}",
                &document[..8]
            );
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
