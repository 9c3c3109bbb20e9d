use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use store::{Link, Target};
use verdict::{Reference, Verdict};

/// A folder of sources.
struct Folder(tempfile::TempDir);

/// Everything that sources say.
#[derive(Debug, Default)]
struct Said {
    links: Vec<Link>,
    problems: Vec<Problem>,
    unsupported: u64,
    excluded: u64,
}

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        for (name, content) in files {
            folder.add(name, content.as_bytes());
        }
        folder
    }

    fn add(&self, name: &str, content: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, content).expect("written");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read_with(&self, names: &[&str], options: SourceOptions) -> Said {
        let inputs = names.iter().map(|name| {
            let input = Input::from_argument(self.path(name).as_os_str());
            input.expect("it is there")
        });
        said(inputs.collect(), options)
    }

    fn read(&self, names: &[&str]) -> Said {
        self.read_with(names, SourceOptions::default())
    }

    fn list(&self, name: &str) -> Said {
        self.list_with(name, SourceOptions::default())
    }

    fn list_with(&self, name: &str, options: SourceOptions) -> Said {
        let input = Input::from_list(self.path(name).as_os_str()).expect("it is there");
        said(vec![input], options)
    }

    /// Texts without the path of the folder.
    fn shown(&self, text: &str) -> String {
        text.replace(&self.0.path().display().to_string(), "DIR")
    }

    /// `source:line:column url`, and the cause if the URL is not good.
    fn places(&self, said: &Said) -> Vec<String> {
        let place = |found: &Link| {
            let Reference {
                source,
                line,
                column,
                ..
            } = &found.reference;
            let (line, column) = (line.expect("a line"), column.expect("a column"));
            let cause = match &found.target {
                Target::Local(Verdict::Failed(cause), _) => format!(" {}", cause.name()),
                _ => String::new(),
            };
            self.shown(&format!(
                "{source}:{line}:{column} {}{cause}",
                found.spelling
            ))
        };
        said.links.iter().map(place).collect()
    }

    fn problems(&self, said: &Said) -> Vec<String> {
        let problems = said.problems.iter();
        problems
            .map(|problem| self.shown(&format!("{:?} {problem}", problem.kind)))
            .collect()
    }
}

fn said(inputs: Vec<Input>, options: SourceOptions) -> Said {
    let mut batches = start(inputs, options);
    let mut said = Said::default();
    loop {
        match batches.next(Duration::from_secs(60)) {
            Next::Batch(batch) => {
                assert!(batch.links.len() <= 256);
                said.links.extend(batch.links);
                said.problems.extend(batch.problems);
                said.unsupported += batch.unsupported;
                said.excluded += batch.excluded;
            }
            Next::Nothing => panic!("the sources end"),
            Next::End => return said,
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

#[test]
fn files_of_folders_come_in_the_order_of_their_names() {
    let folder = Folder::new(&[
        ("b.md", "<http://x/b>"),
        ("a/z.md", "<http://x/az>"),
        ("a/b.html", "<a href=http://x/ab>"),
        ("f.png", "<a href=http://x/f>"),
        (".hidden.md", "<http://x/hidden>"),
        ("ignored.md", "<http://x/ignored>"),
        (".gitignore", "ignored.md\n"),
    ]);
    folder.add("g.md.gz", &gzip(b"[x](http://x/g)"));
    let plain = [
        "DIR/a/b.html:1:9 http://x/ab",
        "DIR/a/z.md:1:1 http://x/az",
        "DIR/b.md:1:1 http://x/b",
        "DIR/g.md.gz:1:1 http://x/g",
    ];
    let said = folder.read(&[""]);
    let places = |said: &Said| -> Vec<String> {
        let places = folder.places(said).into_iter();
        places.map(|it| it.replace("DIR//", "DIR/")).collect()
    };
    assert_eq!(places(&said), plain);
    assert_eq!(folder.problems(&said), [""; 0]);
    let all = SourceOptions {
        hidden: true,
        ignore_files: false,
        ..SourceOptions::default()
    };
    let mut more = places(&folder.read_with(&[""], all));
    more.retain(|place| !plain.contains(&&**place));
    let expected = [
        "DIR/.hidden.md:1:1 http://x/hidden",
        "DIR/ignored.md:1:1 http://x/ignored",
    ];
    assert_eq!(more, expected);
    // The order is that of the inputs, and a file that is named is read in any case.
    let named = folder.read(&["f.png", "ignored.md", "a"]);
    let expected = [
        "DIR/f.png:1:9 http://x/f",
        "DIR/ignored.md:1:1 http://x/ignored",
        "DIR/a/b.html:1:9 http://x/ab",
        "DIR/a/z.md:1:1 http://x/az",
    ];
    assert_eq!(folder.places(&named), expected);
}

#[test]
fn what_is_no_file_is_left_out_of_folders() {
    let folder = Folder::new(&[("a.md", "<http://x/a>")]);
    symlink("a.md", folder.path("link.md")).expect("linked");
    symlink(".", folder.path("loop")).expect("linked");
    let fifo = folder.path("fifo.md");
    let fifo = std::process::Command::new("mkfifo").arg(fifo).status();
    assert!(fifo.expect("mkfifo runs").success());
    let said = folder.read(&[""]);
    assert_eq!(said.links.len(), 1, "{said:?}");
    assert_eq!(folder.problems(&said), [""; 0]);
}

#[test]
fn what_cannot_be_read_is_a_problem_and_the_rest_goes_on() {
    let folder = Folder::new(&[("a.md", "<http://x/a>"), ("c.md", "<http://x/c>")]);
    let inputs = ["a.md", "b.md", "c.md"].map(|name| Input::Path(folder.path(name)));
    let said = said(inputs.into(), SourceOptions::default());
    assert_eq!(said.links.len(), 2);
    let missing = "Unreadable DIR/b.md: cannot be read: No such file or directory (os error 2)";
    assert_eq!(folder.problems(&said), [missing]);
}

#[test]
fn a_folder_that_cannot_be_read_is_a_problem() {
    let folder = Folder::new(&[("a.md", "<http://x/a>"), ("sub/b.md", "<http://x/b>")]);
    let set = |mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(folder.path("sub"), permissions).expect("permitted");
    };
    set(0o000);
    let is_superuser = fs::read_dir(folder.path("sub")).is_ok();
    let said = folder.read(&[""]);
    set(0o700);
    if is_superuser {
        assert_eq!(said.links.len(), 2);
    } else {
        assert_eq!(said.links.len(), 1);
        assert!(
            folder.problems(&said)[0].contains("sub: cannot be read: "),
            "{said:?}"
        );
    }
}

#[test]
fn lists_have_a_url_in_each_line() {
    let list = "\u{feff}http://x/1\r\n\n# comment\n  HTTP://X/a b \t\nnot a url\nmailto:a@x\nhttp://x/last";
    let folder = Folder::new(&[("urls.txt", list)]);
    let said = folder.list("urls.txt");
    let expected = [
        "DIR/urls.txt:1:1 http://x/1",
        "DIR/urls.txt:4:3 HTTP://X/a b",
        "DIR/urls.txt:5:1 not a url invalid_url",
        "DIR/urls.txt:7:1 http://x/last",
    ];
    assert_eq!(folder.places(&said), expected);
    assert_eq!((said.unsupported, said.excluded), (1, 0));
    let is_given = |link: &Link| match link.target {
        Target::Ask(_, demand) => demand.given && demand.private,
        Target::Local(..) => true,
    };
    assert!(said.links.iter().all(is_given));
    let folder = Folder::new(&[]);
    folder.add("urls.gz", &gzip(list.as_bytes()));
    assert_eq!(folder.list("urls.gz").links.len(), 4);
}

#[test]
fn a_line_that_is_no_url_is_a_problem() {
    let long = "a".repeat(70_000);
    let folder = Folder::new(&[]);
    let list = format!("http://x/1\nhttp://{long}\nhttp://x/3\0http://x/");
    folder.add("urls.txt", &[list.as_bytes(), b"\xff\0"].concat());
    let said = folder.list("urls.txt");
    let expected = ["DIR/urls.txt:1:1 http://x/1", "DIR/urls.txt:3:1 http://x/3"];
    assert_eq!(folder.places(&said), expected);
    let problems = [
        "TooLong DIR/urls.txt:2: the URL is longer than 65536 bytes",
        "Malformed DIR/urls.txt:4: not UTF-8",
    ];
    assert_eq!(folder.problems(&said), problems);
}

#[test]
fn many_wrong_lines_are_counted() {
    let folder = Folder::new(&[("a.jsonl", &"{}\n".repeat(1000))]);
    let problems = folder.problems(&folder.list("a.jsonl"));
    assert_eq!(problems.len(), 101);
    assert_eq!(
        problems[100],
        "Malformed DIR/a.jsonl: 900 more lines are wrong"
    );
}

#[test]
fn fields_can_be_named() {
    let folder = Folder::new(&[("a.jsonl", "{\"a\":{\"b\":\"http://x/1\"}}\n")]);
    let options = SourceOptions {
        field: "a.b".to_owned(),
        ..SourceOptions::default()
    };
    let said = folder.list_with("a.jsonl", options);
    assert_eq!(folder.places(&said), ["DIR/a.jsonl:1:12 http://x/1"]);
    assert_eq!(folder.problems(&said), [""; 0]);
}

#[test]
fn sizes_are_limited() {
    let folder = Folder::new(&[("a.md", &format!("<http://x/a>{}", " ".repeat(1000)))]);
    let bomb = gzip(&vec![b'a'; 1 << 20]);
    folder.add("b.md.gz", &bomb);
    folder.add("c.md", b"<http://x/c>");
    let options = SourceOptions {
        max_size: 1000,
        ..SourceOptions::default()
    };
    let said = folder.read_with(&["a.md", "b.md.gz", "c.md"], options);
    assert_eq!(folder.places(&said), ["DIR/c.md:1:1 http://x/c"]);
    let problem = |name| format!("TooLong DIR/{name}: longer than 1000 bytes, not read");
    assert_eq!(folder.problems(&said), ["a.md", "b.md.gz"].map(problem));
    folder.add("d.md.gz", &gzip(&vec![b' '; (8 << 20) + 1]));
    let said = folder.read(&["d.md.gz"]);
    let problem = "TooLong DIR/d.md.gz: longer than 8388608 bytes, not read";
    assert_eq!(folder.problems(&said), [problem]);
}

#[test]
fn a_line_without_an_end_is_not_kept() {
    let folder = Folder::new(&[]);
    folder.add("urls.gz", &gzip(&vec![b'0'; 20 << 20]));
    let said = folder.list("urls.gz");
    assert!(said.links.is_empty());
    let problem =
        "TooLong DIR/urls.gz:1: the line is longer than 16777216 bytes, the rest is not read";
    assert_eq!(folder.problems(&said), [problem]);
}

#[test]
fn cut_data_is_a_problem_and_its_beginning_is_read() {
    let lines: String = (0..1000).map(|n| format!("<http://x/{n}>\n\n")).collect();
    let packed = gzip(lines.as_bytes());
    let half = &packed[..packed.len() / 2];
    let folder = Folder::new(&[]);
    folder.add("a.md.gz", half);
    folder.add("b.gz", half);
    // The checksum does not match.
    folder.add("c.md.gz", &[&packed[..packed.len() - 8], &[0; 8]].concat());
    let said = folder.read(&["a.md.gz"]);
    assert!(said.links.len() > 100, "{}", said.links.len());
    let cut = "Cut DIR/a.md.gz: the gzip data is cut: only the part before was read";
    assert_eq!(folder.problems(&said), [cut]);
    assert_eq!(folder.list("b.gz").problems.len(), 1);
    let problems = folder.problems(&folder.read(&["c.md.gz"]));
    let damaged = "Cut DIR/c.md.gz: the gzip data is damaged";
    assert!(problems[0].starts_with(damaged), "{problems:?}");
}

#[test]
fn links_to_files_are_looked_up() {
    let text =
        "[a](b%20c.md?x=1) [b](sub/) [c](none.md) [d](../nowhere) [e](sub/../a.md)\n[f](<b c.md>)";
    let folder = Folder::new(&[("a.md", text), ("b c.md", ""), ("sub/x.md", "")]);
    let said = folder.read(&["a.md"]);
    let expected = [
        "DIR/a.md:1:1 file://DIR/b%20c.md?x=1",
        "DIR/a.md:1:19 file://DIR/sub/",
        "DIR/a.md:1:29 file://DIR/none.md file_missing",
    ];
    let places = folder.places(&said);
    assert_eq!(places[..3], expected);
    assert!(places[3].ends_with("/nowhere file_missing"), "{places:?}");
    assert_eq!(places[4], "DIR/a.md:1:58 file://DIR/a.md");
    assert_eq!(places[5], "DIR/a.md:2:1 file://DIR/b%20c.md");
    let written = said.links.iter();
    let written: Vec<_> = written
        .map(|found| found.reference.written.as_deref())
        .collect();
    assert_eq!(written[..2], [Some("b%20c.md?x=1"), Some("sub/")]);
}

#[test]
fn fragments_of_files_are_looked_up() {
    let folder = Folder::new(&[
        (
            "a.md",
            "# My Heading!\n[a](#my-heading) [b](#none) [c](b.html#id) [d](b.html#no) [e](c.txt#x) [f](b.html#) [g](sub#x)\n\
             [h](site/#there) [i](site#no)",
        ),
        ("b.html", "<p id=id>"),
        ("c.txt", ""),
        ("sub/x.md", ""),
        ("site/index.html", "<p id=there>"),
    ]);
    let missing = |fragments| {
        let options = SourceOptions {
            fragments,
            ..SourceOptions::default()
        };
        let mut places = folder.places(&folder.read_with(&["a.md"], options));
        assert_eq!(places.len(), 9);
        places.retain(|place| place.ends_with("_missing"));
        places
    };
    assert_eq!(missing(false), [""; 0]);
    let expected = [
        "DIR/a.md:2:18 file://DIR/a.md#none fragment_missing",
        "DIR/a.md:2:44 file://DIR/b.html#no fragment_missing",
        "DIR/a.md:3:18 file://DIR/site#no fragment_missing",
    ];
    assert_eq!(missing(true), expected);
}

#[test]
fn names_that_are_not_utf_8_are_shown() {
    let folder = Folder::new(&[]);
    let path = folder.0.path().join(OsStr::from_bytes(b"\xff.md"));
    fs::write(&path, "<http://x/a> [b](c.md)").expect("written");
    let said = folder.read(&[""]);
    assert_eq!(said.links.len(), 2);
    let source = &said.links[0].reference.source;
    assert!(source.ends_with("\u{fffd}.md"), "{source}");
}
