//! The login of the page: shows a token once, and gets a session for it.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Extension, Router};
use maud::html;
use url::form_urlencoded;

use super::access::{COOKIE, SESSION, Visitor};
use super::answer::{Answer, Refused, see_other};
use super::body::{checked_back, form};
use super::site::Site;
use crate::watch::page::bare;

pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/login", get(page).post(log_in))
        .route("/logout", post(log_out))
}

/// Where one who has no session is sent, to come back to this path.
pub(super) fn login_for(path: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("back", path)
        .finish();
    format!("/login?{query}")
}

async fn page(visitor: Extension<Visitor>, request: Request) -> Answer {
    let query = request.uri().query().unwrap_or_default();
    let mut query = form_urlencoded::parse(query.as_bytes());
    let back = query.find(|(name, _)| name == "back");
    let back = back.map(|(_, back)| back).unwrap_or_default();
    shown(StatusCode::OK, &visitor, checked_back(&back), None)
}

async fn log_in(
    State(site): State<Arc<Site>>,
    visitor: Extension<Visitor>,
    request: Request,
) -> Answer {
    let is_secure = is_secure(&site, request.headers());
    let form = match form(&site, request).await {
        Ok(form) => form,
        Err(refused) => return refused.answer(false),
    };
    let Some(holder) = site.access.holder_of(form.get("token").trim()) else {
        let why = "This is no token of the service, or the token has ended.";
        return shown(StatusCode::FORBIDDEN, &visitor, form.back(), Some(why));
    };
    let session = site.access.session(&holder);
    with_cookie(
        see_other(form.back()),
        &session,
        SESSION.as_secs(),
        is_secure,
    )
}

async fn log_out(State(site): State<Arc<Site>>, request: Request) -> Answer {
    let headers = request.headers().clone();
    match form(&site, request).await {
        Ok(_) => {
            site.access.end_sessions(&headers);
            with_cookie(see_other("/login"), "", 0, is_secure(&site, &headers))
        }
        Err(refused) => refused.answer(false),
    }
}

/// Whether the page came over TLS, by a reverse proxy that the operator has named.
fn is_secure(site: &Site, headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|field| field == value);
    let loaded = site.current.get();
    let mut names = loaded.config.http.names.iter();
    is("x-forwarded-proto", "https") && names.any(|name| is(header::HOST.as_str(), name))
}

fn with_cookie(mut answer: Answer, session: &str, age: u64, is_secure: bool) -> Answer {
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie =
        format!("{COOKIE}={session}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}");
    match HeaderValue::from_str(&cookie) {
        Ok(cookie) => {
            answer.headers_mut().insert(header::SET_COOKIE, cookie);
            answer
        }
        Err(_) => Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "no session").answer(false),
    }
}

fn shown(status: StatusCode, visitor: &Visitor, back: &str, wrong: Option<&str>) -> Answer {
    let body = html! {
        section {
            @if let Some(wrong) = wrong {
                p.bad role="alert" { (wrong) }
            }
            form.login method="post" action="/login" {
                input type="hidden" name="csrf" value=(visitor.csrf);
                input type="hidden" name="back" value=(back);
                // For those who let a browser keep the token.
                input hidden name="user" value="token" autocomplete="username";
                label for="token" { "Token" }
                input #token type="password" name="token" required autofocus autocomplete="current-password";
                button { "Log in" }
            }
            p { "A token is made with " code { "crawler-cli watch token add NAME" } "." }
        }
    };
    bare(status, "Log in", &body)
}
