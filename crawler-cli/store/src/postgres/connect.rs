//! Connects to a server, and refuses one that may lose what it has committed.

use std::fmt::Display;

use std::time::Duration;

use postgres::config::{Host, SslMode, SslNegotiation};
use postgres::{Client, NoTls};

use super::address::{Address, MAY_LOSE};
use super::link::Link;
use super::tls::Trust;
use crate::StoreErrorKind;
use crate::tables::failure::of_server;

/// The least version of a server, as it says it itself.
const LEAST_VERSION: i32 = 150_000;

/// What each connection asks for: a statement that takes longer has failed, and a process that stops in the middle of a
/// transaction keeps no other waiting for long.
const SESSION: &str = "SET statement_timeout = '60s'; SET lock_timeout = '30s'; \
     SET idle_in_transaction_session_timeout = '10s'; SET client_min_messages = warning; \
     SET default_transaction_isolation = 'read committed'; SET bytea_output = 'hex'";

/// How long a server may be silent when it owes an answer: longer than a statement may take.
pub(super) const ANSWER: Duration = Duration::from_secs(75);

impl Address {
    /// Connects.
    ///
    /// # Errors
    /// Nothing can be reached, or the server is not to be used.
    pub fn connect(&self) -> Result<Client, StoreErrorKind> {
        let mut client = self.client()?;
        self.inspect(&mut client)?;
        let prepared = client.batch_execute(SESSION);
        prepared.map_err(|error| of_server(&error))?;
        Ok(client)
    }

    fn client(&self) -> Result<Client, StoreErrorKind> {
        let mut config = self.config.clone();
        let is_socket = |host: &Host| matches!(host, Host::Unix(_));
        let connected = match config.get_hosts() {
            // A socket of this machine is used as it is.
            [_, ..] if config.get_hosts().iter().all(is_socket) => {
                config.ssl_mode(SslMode::Disable).connect(NoTls)
            }
            _ => {
                let link = Link {
                    tls: self.trust.connector().map_err(StoreErrorKind::Database)?,
                    needs_tls: self.trust != Trust::IfOffered,
                    connect: config.get_connect_timeout().copied().unwrap_or(ANSWER),
                    answer: self.answer,
                    name: String::new(),
                };
                // The library leaves the stream, and so TLS, to the link.
                config
                    .ssl_mode(SslMode::Require)
                    .ssl_negotiation(SslNegotiation::Direct)
                    .connect(link)
            }
        };
        connected.map_err(|error| of_server(&error))
    }

    fn inspect(&self, client: &mut Client) -> Result<(), StoreErrorKind> {
        let query = "SELECT current_setting('server_version_num')::int, current_setting('server_version'), \
             current_setting('server_encoding'), pg_is_in_recovery(), current_setting('fsync'), \
             current_setting('full_page_writes'), current_setting('synchronous_commit')";
        let row = client.query_one(query, &[]);
        let row = row.map_err(|error| of_server(&error))?;
        let text = |column: usize| {
            row.try_get::<_, &str>(column)
                .map_err(|error| of_server(&error))
        };
        let number: i32 = row.try_get(0).map_err(|error| of_server(&error))?;
        if number < LEAST_VERSION {
            let version = text(1)?;
            return refuse(format_args!(
                "PostgreSQL {version} is too old: 15 is needed"
            ));
        }
        let encoding = text(2)?;
        if encoding != "UTF8" {
            return refuse(format_args!(
                "the database has the encoding {encoding}: UTF8 is needed"
            ));
        }
        if row.try_get(3).map_err(|error| of_server(&error))? {
            return Err(StoreErrorKind::ReadOnly);
        }
        for (column, setting) in [
            (4, "fsync"),
            (5, "full_page_writes"),
            (6, "synchronous_commit"),
        ] {
            if text(column)? == "off" && !self.may_lose {
                return refuse(format_args!(
                    "{setting} is off, so that the server may lose what it has committed; switch it on, or add \
                     {MAY_LOSE}=1 to the address"
                ));
            }
        }
        Ok(())
    }
}

fn refuse<T>(why: impl Display) -> Result<T, StoreErrorKind> {
    Err(StoreErrorKind::Database(why.to_string()))
}
