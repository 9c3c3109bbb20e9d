//! What clients send: no more than is allowed, and forms of this service alone.

use std::future::poll_fn;
use std::pin::Pin;

use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use tokio::sync::OwnedSemaphorePermit;
use url::form_urlencoded;

use super::access::Visitor;
pub(in crate::watch) use super::access::kind_of;
use super::answer::Refused;
use super::site::Site;
use super::slot::Slot;

/// The fields of a form.
#[derive(Debug)]
pub(in crate::watch) struct Form(Vec<(String, String)>);

impl Form {
    /// The field of this name; empty if there is none.
    pub(in crate::watch) fn get(&self, name: &str) -> &str {
        let field = self.0.iter().find(|(field, _)| field == name);
        field.map_or("", |(_, value)| value)
    }

    /// Where to go after the deed: a page of this service.
    pub(in crate::watch) fn back(&self) -> &str {
        checked_back(self.get("back"))
    }
}

/// The path of a page of this service; the first page if that is none.
pub(in crate::watch) fn checked_back(back: &str) -> &str {
    let is_path = back.starts_with('/') && !back[1..].starts_with(['/', '\\']);
    let is_plain = back.bytes().all(|byte| byte.is_ascii_graphic());
    if is_path && is_plain { back } else { "/" }
}

/// Reads a form that a page of this service has sent.
///
/// # Errors
/// The request is no form, is too large, or was not made by this service.
pub(in crate::watch) async fn form(site: &Site, request: Request) -> Result<Form, Refused> {
    if kind_of(request.headers()) != Some("application/x-www-form-urlencoded") {
        let why = "a form is needed";
        return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let visitor = request.extensions().get::<Visitor>().cloned();
    let sent = read_body(site, request, SMALL).await?;
    let fields = form_urlencoded::parse(&sent.content).into_owned();
    let fields: Vec<_> = fields.take(MOST_FIELDS + 1).collect();
    if fields.len() > MOST_FIELDS {
        let why = format!("more than {MOST_FIELDS} fields");
        return Err(Refused::new(StatusCode::BAD_REQUEST, why));
    }
    let form = Form(fields);
    let is_own = |visitor: Visitor| visitor.has_csrf(form.get("csrf"), &site.access);
    match visitor.is_some_and(is_own) {
        true => Ok(form),
        false => Err(Refused::new(
            StatusCode::FORBIDDEN,
            "the form is not of this service, or the service has started again: load the page again",
        )),
    }
}

/// A body that was read.
#[derive(Debug)]
pub(in crate::watch) struct Sent {
    pub(in crate::watch) content: Vec<u8>,
    /// The place of a large body, until all is done with it.
    pub(in crate::watch) place: Option<OwnedSemaphorePermit>,
}

/// Reads a body of at most so many bytes. Only some large bodies are in memory at a time.
///
/// # Errors
/// The body is larger, the client has ended, or too many large bodies are being read.
pub(in crate::watch) async fn read_body(
    site: &Site,
    request: Request,
    most: usize,
) -> Result<Sent, Refused> {
    let large = || {
        let why = format!("more than {most} bytes");
        Refused::new(StatusCode::PAYLOAD_TOO_LARGE, why)
    };
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > most) {
        return Err(large());
    }
    let slot = request.extensions().get::<Slot>().cloned();
    let reads = |reads| slot.iter().for_each(|slot| slot.reads_body(reads));
    reads(true);
    let mut body = request.into_body();
    let mut content = Vec::new();
    let mut place: Option<OwnedSemaphorePermit> = None;
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|_| {
            let why = "the body ends too early";
            Refused::new(StatusCode::BAD_REQUEST, why)
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if content.len() + data.len() > most {
            return Err(large());
        }
        if content.len() + data.len() > SMALL && place.is_none() {
            place = Some(site.large()?);
        }
        content.extend_from_slice(&data);
    }
    reads(false);
    Ok(Sent { content, place })
}

/// The largest body of most requests.
pub(in crate::watch) const SMALL: usize = 64 << 10;
const MOST_FIELDS: usize = 64;
