//! Checks the links of a page, and prints what is wrong with them.
//!
//! ```sh
//! cargo run -p crawler-cli --example check -- https://www.example.com/
//! ```
//!
//! Without an argument, the page is one of the sample mirror that is part of the library.

use std::error::Error;
use std::ffi::OsStr;
use std::ops::ControlFlow;

use check::sources::Input;
use check::{Checker, Event};
use crawl::demo::server::Server;

fn main() -> Result<(), Box<dyn Error>> {
    let mirror = Server::start()?;
    let page = std::env::args().nth(1);
    let page = page.unwrap_or_else(|| format!("{}SIGs/", mirror.url()));

    let checker = Checker::new().input(Input::from_argument(OsStr::new(&page))?);
    let summary = checker.run(|event| {
        match event {
            Event::Checked(checked) => {
                let class = checked.answer.verdict.class().name();
                let cause = checked.answer.verdict.cause();
                let cause = cause.map_or_else(String::new, |cause| cause.name().into_owned());
                println!("{class:4} {cause:12} {}", checked.url);
                for place in checked
                    .references
                    .iter()
                    .filter(|place| place.line.is_some())
                {
                    println!(
                        "     at line {} of {}",
                        place.line.unwrap_or(0),
                        place.source
                    );
                }
            }
            Event::Problem(problem) => eprintln!("{problem}"),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    println!("{} URLs, {} of them fail", summary.urls, summary.failing);
    Ok(())
}
