//! `watch token`: who may use the operator's page and the API.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde_json::json;

use super::ConfigRows;
use super::verb::{Failure, Rows, Spec, Typed, Values, moment, print, usage};
use crate::cli::help_rows::HelpRows;
use crate::cli::option::Section;
use crate::terminal;
use crate::watch::control::{Command, TokenDeed};
use crate::watch::hands::Shape;
use crate::watch::tokens::{NewToken, hash_of};

/// `watch token`.
pub(super) struct Token;

impl Spec for Token {
    const NAME: &'static str = "token";
    const TITLE: &'static str = "watch token";
    const ABOUT: &'static str = "make, list or remove tokens for the page and the API";
    const USAGE: &'static str = "add NAME [--write] [--expires TIME] | list | remove NAME";
    const DESCRIPTION: &'static str = "\
As soon as there is a token, every request over HTTP needs one, but those for /healthz and /readyz: 'Authorization: Bearer TOKEN', or the page's own form. A service that is to be reached from other machines needs at least one.
add: make a token and print it, once. Only its hash is stored, so a token that is lost cannot be shown again: remove it, and make another one. A token reads; with --write it also changes what the service does.
list: the tokens by name, without what opens anything. remove: the token of this name opens nothing any more, at once.";
    const TABLE: &'static [Section<Typed<Self>>] = &[Section {
        heading: "Options",
        options: &[
            Rows::<Self>::TOKEN,
            Rows::<Self>::JSON,
            ConfigRows::ALL,
            HelpRows::ALL,
        ],
    }];
    const EXAMPLES: &'static [(&'static str, &'static str)] = &[
        (
            "crawler-cli watch token add prometheus --expires 365d",
            "A token that reads",
        ),
        ("crawler-cli watch token remove prometheus", "End the token"),
    ];
    const OPERANDS: &'static [&'static str] = &["add", "list", "remove"];

    fn run(values: Values) -> Result<(), Failure> {
        let operands: Vec<&str> = values.operands.iter().map(String::as_str).collect();
        let is_for_new = values.may_write || values.expires.is_some();
        match *operands {
            ["add", name] => add(&values, name),
            ["list"] | ["remove", _] if is_for_new => {
                Err(usage("--write and --expires are for new tokens"))
            }
            ["list"] => list(&values),
            ["remove", name] => {
                let name = name.to_owned();
                let done = format!("removed token {}\n", terminal::neutralise(&name));
                let deed = TokenDeed::Remove { name };
                values.hand()?.send(&Command::Token { deed })?;
                print(&done)
            }
            _ => Err(usage(format!("neither of: {}", Self::USAGE))),
        }
    }
}

fn add(values: &Values, name: &str) -> Result<(), Failure> {
    let expires_at = values.expires.as_deref().map(end).transpose()?;
    let token = NewToken::make()?;
    let deed = TokenDeed::Add {
        id: token.id.clone(),
        name: name.to_owned(),
        hash: BASE64_STANDARD.encode(hash_of(&token.text)),
        may_write: values.may_write,
        expires_at,
    };
    values.hand()?.send(&Command::Token { deed })?;
    match values.shape() {
        Shape::Json => {
            let value = json!({
                "name": name,
                "id": token.id,
                "may_write": values.may_write,
                "expires_at": expires_at,
                "token": token.text,
            });
            print(&format!("{value}\n"))
        }
        Shape::Text => {
            print(&format!("{}\n", token.text))?;
            terminal::say("this token is shown once");
            Ok(())
        }
    }
}

/// When a token ends: a time, a date, or a span from now.
fn end(text: &str) -> Result<Timestamp, Failure> {
    let now = Timestamp::now();
    let end = moment("--expires", text, |span| now.checked_add(span).ok())?;
    match end > now {
        true => Ok(end),
        false => Err(usage(format!("--expires {text}: that is over already"))),
    }
}

fn list(values: &Values) -> Result<(), Failure> {
    let rows = values
        .reader()?
        .token_rows(Timestamp::now(), values.shape())?;
    match (rows.is_empty(), values.shape()) {
        (true, Shape::Text) => print("no tokens: everyone who reaches the service may use it\n"),
        _ => print(&rows),
    }
}
