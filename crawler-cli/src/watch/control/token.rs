//! Makes and removes tokens.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::message::{RefusalKind, Reply, TokenDeed};
use super::perform::{By, note, refused};
use crate::store::{Engine, StoreError, StoredToken};
use crate::watch::tokens::{ID, Tokens};

pub(super) fn token(
    engine: &mut dyn Engine,
    deed: &TokenDeed,
    by: &By,
) -> Result<Reply, StoreError> {
    match deed {
        TokenDeed::Add { .. } => add(engine, deed, by),
        TokenDeed::Remove { name } => match engine.remove_token(name)? {
            true => {
                note(engine, "token", format!("removed token {name}"), by)?;
                Ok(Reply::Done)
            }
            false => Ok(refused(
                RefusalKind::NotFound,
                format!("{name}: no such token"),
            )),
        },
    }
}

fn add(engine: &mut dyn Engine, deed: &TokenDeed, by: &By) -> Result<Reply, StoreError> {
    let stored = match stored(deed, by) {
        Ok(stored) => stored,
        Err(why) => return Ok(refused(RefusalKind::Wrong, why)),
    };
    let name = &stored.name;
    if engine.tokens()?.len() >= Tokens::MOST {
        let why = format!("there are {} tokens already", Tokens::MOST);
        return Ok(refused(RefusalKind::Wrong, why));
    }
    if !engine.save_token(&stored)? {
        let why = format!("there is a token {name} already");
        return Ok(refused(RefusalKind::Wrong, why));
    }
    let scope = if stored.may_write { "write" } else { "read" };
    note(engine, "token", format!("made token {name} ({scope})"), by)?;
    Ok(Reply::Done)
}

/// # Errors
/// What is wrong.
fn stored(deed: &TokenDeed, by: &By) -> Result<StoredToken, String> {
    let TokenDeed::Add {
        id,
        name,
        hash,
        may_write,
        expires_at,
    } = deed
    else {
        return Err("no token".to_owned());
    };
    check_name(name).map_err(|why| format!("token {name:?}: {why}"))?;
    if id.len() != ID || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err("the id of a token has 8 letters and digits".to_owned());
    }
    let hash = BASE64_STANDARD.decode(hash).unwrap_or_default();
    if hash.len() != 32 {
        return Err("the hash of a token has 32 bytes".to_owned());
    }
    Ok(StoredToken {
        id: id.clone(),
        name: name.clone(),
        hash,
        may_write: *may_write,
        made_at: by.now,
        expires_at: *expires_at,
        made_by: by.who.clone(),
    })
}

/// Whether this can be the name of a token: any words.
fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(format!("a name has 1 to {LONGEST_NAME} bytes"));
    }
    match name.chars().any(char::is_control) {
        true => Err("a name has no control characters".to_owned()),
        false => Ok(()),
    }
}

/// In bytes.
const LONGEST_NAME: usize = 200;
