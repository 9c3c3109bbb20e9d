//! The page of `--report html`, as Chromium shows it.

mod common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

use common::{Script, find, page, response, stderr};
use crawler_cli::demo::server::Server;
use tempfile::TempDir;

/// A screenshot of a whole page.
struct Shot {
    width: usize,
    pixels: Vec<[u8; 3]>,
}

/// The area of an element on the page, in pixels.
#[derive(Clone, Copy, Debug)]
struct Area {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

impl Shot {
    fn read(path: &Path) -> Self {
        let file = File::open(path).expect("Chromium made a picture");
        let mut decoder = png::Decoder::new(BufReader::new(file));
        decoder.set_transformations(png::Transformations::ALPHA | png::Transformations::EXPAND);
        let mut reader = decoder.read_info().expect("a PNG");
        let mut bytes = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut bytes).expect("a whole PNG");
        assert_eq!(info.color_type, png::ColorType::Rgba);
        let (pixels, _) = bytes.as_chunks::<4>();
        Self {
            width: info.width as usize,
            pixels: pixels.iter().map(|&[r, g, b, _]| [r, g, b]).collect(),
        }
    }

    fn at(&self, area: Area) -> impl Iterator<Item = [u8; 3]> {
        let rows = self.pixels.chunks(self.width).skip(area.top);
        let rows = rows.take(area.height);
        rows.flat_map(move |row| row[area.left..].iter().take(area.width).copied())
    }
}

/// Chromium with its own profile and without network access.
struct Browser {
    folder: TempDir,
    size: (usize, usize),
    flags: &'static [&'static str],
}

impl Browser {
    fn new(size: (usize, usize), flags: &'static [&'static str]) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        Self {
            folder,
            size,
            flags,
        }
    }

    fn run(&self, more: &[&str], page: &Path) -> Vec<u8> {
        let output = Command::new("chromium")
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-background-networking",
                "--hide-scrollbars",
                "--force-device-scale-factor=1",
                "--host-resolver-rules=MAP * ~NOTFOUND",
            ])
            .arg(format!("--user-data-dir={}", self.folder.path().display()))
            .arg(format!("--window-size={},{}", self.size.0, self.size.1))
            .args(self.flags)
            .args(more)
            .arg(format!("file://{}", page.display()))
            .output()
            .expect("Chromium runs");
        assert!(output.status.success(), "{}", stderr(&output));
        output.stdout
    }

    /// A screenshot of the page. The content security policy of the page prevents scripts.
    fn shot(&self, page: &Path) -> Shot {
        let picture = self.folder.path().join("page.png");
        let flag = format!("--screenshot={}", picture.display());
        self.run(&[&flag], page);
        Shot::read(&picture)
    }

    /// The areas of the charts by name, measured by a script in a copy of the page.
    fn charts(&self, page: &Path) -> BTreeMap<String, Area> {
        let html = fs::read_to_string(page).expect("readable");
        let (before, policy) = html
            .split_once(
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ",
            )
            .expect("a policy");
        let (_, after) = policy.split_once('>').expect("its end");
        let script = "<script>for (const svg of document.querySelectorAll('svg')) {\
             const area = svg.getBoundingClientRect();\
             document.body.append('\\n@' + [svg.getAttribute('aria-label'), area.x, area.y,\
             area.width, area.height].join('@') + '@\\n');}</script>";
        let copy = self.folder.path().join("copy.html");
        fs::write(&copy, format!("{before}{after}{script}")).expect("written");
        let dom = String::from_utf8(self.run(&["--dump-dom"], &copy)).expect("UTF-8");
        let lines = dom.lines().filter_map(|line| line.strip_prefix('@'));
        lines
            .map(|line| {
                let fields: Vec<_> = line.split('@').collect();
                let number = |at: usize| fields[at].parse::<f64>().expect("a number") as usize;
                let area = Area {
                    left: number(1),
                    top: number(2),
                    width: number(3),
                    height: number(4),
                };
                (fields[0].to_owned(), area)
            })
            .collect()
    }
}

#[test]
#[ignore = "needs chromium"]
fn each_chart_is_drawn_without_a_network_in_light_and_dark() {
    // Two hosts with files of known sizes, and one that fails.
    let mirrors = [(); 2].map(|()| Server::start().expect("a server"));
    let names: Vec<_> = (0..50)
        .flat_map(|i| [format!("gone{i}/"), format!("busy{i}/")])
        .collect();
    let failing = Script::start(move |request| match request {
        "GET /" => page(&names.iter().map(String::as_str).collect::<Vec<_>>()),
        request if request.starts_with("GET /busy") => response(500, "", ""),
        _ => response(404, "", ""),
    });
    let folder = tempfile::tempdir().expect("a directory");
    let page = folder.path().join("report.html");
    let [one, two] = mirrors
        .each_ref()
        .map(|mirror| format!("{}SIGs/", mirror.url()));
    let report = ["--report", "html", page.to_str().expect("text")];
    let output = find(
        &[
            &[&*one, &two, &failing.url("/"), "--retries", "0"],
            &report[..],
        ]
        .concat(),
    );
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));

    let light = Scheme {
        flags: &[],
        background: [246, 247, 249],
        blue: [37, 99, 201],
        green: [46, 139, 98],
        orange: [217, 119, 6],
        red: [208, 59, 59],
    };
    let dark = Scheme {
        flags: &["--force-dark-mode"],
        background: [18, 22, 29],
        blue: [121, 168, 245],
        green: [85, 185, 138],
        orange: [240, 164, 75],
        red: [239, 112, 112],
    };
    for scheme in [light, dark] {
        let browser = Browser::new((1200, 3000), scheme.flags);
        let charts = browser.charts(&page);
        let shot = browser.shot(&page);
        assert_eq!((shot.width, shot.pixels.len()), (1200, 1200 * 3000));
        assert_eq!(shot.pixels[0], scheme.background);
        for (name, colours) in [
            ("Tree map of sizes", &[][..]),
            ("Latency over time", &[scheme.blue, scheme.orange]),
            ("Answers over time", &[scheme.green, scheme.red]),
            ("Status by host", &[scheme.green, scheme.orange, scheme.red]),
        ] {
            let area = charts[name];
            assert!(area.left > 0 && area.left + area.width < 1200, "{name}");
            let mut pixels: BTreeMap<_, usize> = BTreeMap::new();
            for pixel in shot.at(area) {
                *pixels.entry(pixel).or_default() += 1;
            }
            assert!(pixels.len() > 30, "{name}: {} colours", pixels.len());
            // More pixels than those of the legend, which has 144 of each colour.
            let drawn = |colour| pixels.get(colour).is_some_and(|&count| count > 200);
            for colour in colours {
                assert!(drawn(colour), "{name}: {colour:?} is missing");
            }
            // Elements without a colour are black.
            assert!(!pixels.contains_key(&[0; 3]), "{name} has black in it");
        }
        // Each host has its own hue in several lightnesses.
        let mut hues: Vec<_> = shot.at(charts["Tree map of sizes"]).collect();
        hues.sort_unstable();
        let large = hues.chunk_by(|a, b| a == b).filter(|run| run.len() > 500);
        assert!(large.count() >= 5);
    }
}

/// The colours of a colour scheme, and the flags that make Chromium request it.
struct Scheme {
    flags: &'static [&'static str],
    background: [u8; 3],
    blue: [u8; 3],
    green: [u8; 3],
    orange: [u8; 3],
    red: [u8; 3],
}
