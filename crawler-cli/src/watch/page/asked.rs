//! A request for a page: who asks, for what, and what has become of the form that was sent before.

use std::sync::Arc;

use axum::Extension;
use axum::extract::FromRequestParts;
use axum::extract::rejection::ExtensionRejection;
use axum::http::request::Parts;

use super::query::Query;
use crate::watch::admin::once::Said;
use crate::watch::admin::{Site, Visitor};

/// A request for a page.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) site: Arc<Site>,
    pub(super) visitor: Visitor,
    pub(super) query: Query,
    /// The page itself, to come back to after a form.
    pub(super) here: String,
    /// What has become of the form that led here.
    pub(super) said: Option<Said>,
}

impl FromRequestParts<Arc<Site>> for Asked {
    type Rejection = ExtensionRejection;

    async fn from_request_parts(
        parts: &mut Parts,
        site: &Arc<Site>,
    ) -> Result<Self, ExtensionRejection> {
        let Extension(visitor) = Extension::<Visitor>::from_request_parts(parts, site).await?;
        let query = Query::of(&parts.uri);
        let number = query.get(SAID).and_then(|number| number.parse().ok());
        Ok(Self {
            said: number.and_then(|number| site.once.said(&visitor.who, number)),
            here: query.without(parts.uri.path(), SAID),
            site: Arc::clone(site),
            visitor,
            query,
        })
    }
}

/// The field with the number of the form that led to a page.
pub(super) const SAID: &str = "said";
