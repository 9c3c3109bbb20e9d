//! `watch token list`: the tokens of the page and the API, without what opens anything.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::words::{Columns, safe, stamp, stamp_from};
use super::{Reader, Shape, line};
use crate::store::{StoreError, StoredToken};

impl Reader {
    /// The tokens, one in each line; empty if there is none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn token_rows(&mut self, now: Timestamp, shape: Shape) -> Result<String, StoreError> {
        let tokens = self.tokens()?;
        Ok(match shape {
            Shape::Text => rows(&tokens, now),
            Shape::Json => tokens.iter().map(|token| line(&json(token))).collect(),
        })
    }
}

/// One line for each token.
fn rows(tokens: &[StoredToken], now: Timestamp) -> String {
    let mut columns = Columns::default();
    for token in tokens {
        let end = match token.expires_at {
            Some(end) if end <= now => format!("expired {}", stamp(end)),
            Some(end) => format!("expires {}", stamp_from(now, end)),
            None => "never expires".to_owned(),
        };
        columns.row([
            safe(&token.name),
            token.id.clone(),
            if token.may_write { "write" } else { "read" }.to_owned(),
            format!("made {} by {}", stamp(token.made_at), safe(&token.made_by)),
            end,
        ]);
    }
    columns.lines("")
}

/// A token for programs.
fn json(token: &StoredToken) -> Value {
    json!({
        "name": token.name,
        "id": token.id,
        "may_write": token.may_write,
        "made_at": token.made_at,
        "made_by": token.made_by,
        "expires_at": token.expires_at,
    })
}
