//! Webhooks as the destination of a sink.

use super::client::Client;
use super::connection::Connection;
use super::dead_letters::DeadLetters;
use super::endpoint::Endpoint;
use super::message::{LOG, Message, MessageForm, key_part, text_value};
use super::round::{Pace, Round, RoundSettings};
use super::signature::Signer;
use super::target::{check_target, header_name, header_value};
use crate::control::Control;
use crate::cursor::Cursor;
use crate::definition_error::DefinitionError;
use crate::fault::{Fault, StopCode};
use crate::sink::{BatchLimits, DeliveryEnd, Destination, PayloadFormat, WebhookTarget};
use crate::status::Status;
use hyper::header::{HOST, HeaderMap, HeaderValue, USER_AGENT};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use wellspring_log::{Clock, RecordView};
use wellspring_tls::{ClientTerms, TermsFault, pem};
use wellspring_types::HistoryId;
use wellspring_types::url::Scheme;
use zeroize::Zeroizing;

/// The limits of a batch. A round ends with its slowest event, so it must be long compared with a
/// request.
const LIMITS: BatchLimits =
    BatchLimits { events: 4096, bytes: 8 << 20, linger: Duration::from_millis(2) };

/// Settings of a [`WebhookDestination`].
pub struct WebhookDestinationSettings {
    /// The sink's name, for dead letters.
    pub sink_name: String,
    /// The sink's identity, the first part of idempotency keys: stable across restarts, unique
    /// among the receiver's sinks, and another one in another history of the log.
    pub identity: String,
    /// The log's name, for headers and documents.
    pub log_name: String,
    /// Its history, in the ids of documents of events without ids; `None`: not known yet.
    pub history: Option<HistoryId>,
    /// The target.
    pub target: WebhookTarget,
    /// The content of a body.
    pub format: PayloadFormat,
    /// Prefix of the key tag: an event's key is the text after this and a colon in its first such
    /// tag. Events without a key are delivered in any order.
    pub partition_by: Option<String>,
    /// Storage for events that were refused [`WebhookTarget::max_tries`] times; `None`: the sink
    /// stops.
    pub dead_letters: Option<DeadLetters>,
    /// The clock for signatures.
    pub clock: Arc<dyn Clock>,
    /// Counts retries and dead letters. Its state becomes `retrying` when attempts have been
    /// failing for 5 s.
    pub status: Arc<Status>,
}

type Secrets = Box<dyn Fn(&str) -> Result<Zeroizing<String>, Fault> + Send>;

/// Delivers each event as a `POST` to a URL, at least once; events with the same key one after the
/// other. It stores no cursor. All work except name resolution happens on the calling thread.
///
/// A delivery never returns [`Fault::Transient`]: it waits for the obstacle to pass, so that
/// accepted events are not sent again. An earlier incarnation of the sink cannot be fenced, so a
/// receiver that must not process an event twice has to remember idempotency keys.
pub struct WebhookDestination {
    target: WebhookTarget,
    clock: Arc<dyn Clock>,
    secret: Secrets,
    form: MessageForm,
    round: RoundSettings,
    batch: Vec<Arc<Message>>,
    opened: Option<OpenDestination>,
}

/// The state between `open` and the next fault. The field order determines the drop order.
struct OpenDestination {
    client: Arc<Client>,
    idle: Vec<Connection>,
    runtime: Option<Runtime>,
}

impl Drop for OpenDestination {
    fn drop(&mut self) {
        self.idle.clear();
        // A name lookup can occupy a thread for many seconds, and an ordinary drop would wait for
        // it.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for WebhookDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.round.sink_name;
        f.debug_struct("WebhookDestination").field("sink_name", name).finish_non_exhaustive()
    }
}

impl WebhookDestination {
    /// A destination that is not open. `secret` returns a secret by name; each
    /// [`open`](Destination::open) calls it.
    pub fn new(
        settings: WebhookDestinationSettings,
        secret: impl Fn(&str) -> Result<Zeroizing<String>, Fault> + Send + 'static,
    ) -> WebhookDestination {
        let form = MessageForm {
            log_name: settings.log_name.clone(),
            history: settings.history,
            identity: key_part(&settings.identity),
            format: settings.format,
            partition_by: settings.partition_by,
            keep_originals: settings.dead_letters.is_some() && settings.target.max_tries.is_some(),
        };
        let round = RoundSettings {
            sink_name: settings.sink_name,
            log_name: settings.log_name,
            in_flight: settings.target.in_flight,
            max_tries: settings.target.max_tries,
            dead_letters: settings.dead_letters,
            status: settings.status,
            pace: Pace::default(),
            seed: settings.clock.wall_us(),
        };
        WebhookDestination {
            target: settings.target,
            clock: settings.clock,
            secret: Box::new(secret),
            form,
            round,
            batch: Vec::new(),
            opened: None,
        }
    }

    fn client(&self) -> Result<Client, Fault> {
        let unusable = |why: DefinitionError| Fault::stop(StopCode::Unusable, why);
        check_target(&self.target).map_err(unusable)?;
        let endpoint = Endpoint::parse(&self.target.url).map_err(unusable)?;
        let tls = match endpoint.scheme {
            Scheme::Http => None,
            Scheme::Https => {
                let authorities = self.target.ca_file.as_deref().map(pem::roots).transpose();
                let authorities = authorities
                    .map_err(|why| unusable(format!("the file of authorities: {why}").into()))?;
                let terms = ClientTerms::new(&endpoint.host, authorities, None);
                Some(terms.map_err(|fault| unusable(in_words(fault, &endpoint.host).into()))?)
            }
        };
        let mut secrets = Vec::new();
        let mut template = HeaderMap::new();
        template.insert(HOST, endpoint.authority.clone());
        let agent = concat!("wellspring/", env!("CARGO_PKG_VERSION"));
        template.insert(USER_AGENT, HeaderValue::from_static(agent));
        template.insert(&LOG, text_value(&self.round.log_name));
        for (name, value) in &self.target.headers {
            let value = header_value(name, value).map_err(unusable)?;
            template.insert(header_name(name).map_err(unusable)?, value);
        }
        for (name, secret_name) in &self.target.secret_headers {
            let secret = (self.secret)(secret_name)?;
            let mut value = header_value(name, &secret).map_err(unusable)?;
            value.set_sensitive(true);
            template.insert(header_name(name).map_err(unusable)?, value);
            secrets.push(secret);
        }
        let mut signer = None;
        if let Some(name) = &self.target.secret {
            let secret = (self.secret)(name)?;
            let made = Signer::new(&secret)
                .map_err(|why| unusable(format!("the secret {name:?} {why}").into()))?;
            signer = Some(made);
            secrets.push(secret);
        }
        Ok(Client {
            endpoint,
            tls,
            template,
            signer,
            secrets,
            timeout: Duration::from_millis(self.target.timeout_ms),
            clock: Arc::clone(&self.clock),
        })
    }
}

/// Why TLS cannot be spoken with a receiver.
fn in_words(fault: TermsFault, host: &str) -> String {
    match fault {
        TermsFault::Host => format!("no certificate can be for the host {host:?}"),
        TermsFault::NoAuthority => "this machine trusts no authority: name one with a file of \
                                    authorities, or install the package `ca-certificates`"
            .to_owned(),
        TermsFault::Setup(why) => format!("TLS cannot be set up: {why}"),
    }
}

impl Destination for WebhookDestination {
    fn open(&mut self) -> Result<Option<Cursor>, Fault> {
        self.batch.clear();
        self.opened = None;
        let client = Arc::new(self.client()?);
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| Fault::transient(format!("cannot send requests: {error}")))?;
        self.opened = Some(OpenDestination { client, idle: Vec::new(), runtime: Some(runtime) });
        Ok(None)
    }

    fn limits(&self) -> BatchLimits {
        LIMITS
    }

    fn push(&mut self, event: &RecordView<'_>) -> Result<(), Fault> {
        self.batch.push(Arc::new(self.form.message(event)));
        Ok(())
    }

    fn deliver(&mut self, cursor: Cursor, control: &Control) -> Result<DeliveryEnd, Fault> {
        let batch = std::mem::take(&mut self.batch);
        let Some(OpenDestination { client, idle, runtime: Some(runtime) }) = &mut self.opened
        else {
            return Err(Fault::transient("the destination is not open"));
        };
        let round = Round::new(&self.round, client, &batch, idle);
        let end = runtime.block_on(round.run(control));
        let through = match batch.get(end.handled) {
            // All earlier events are handled or did not match.
            Some(first_unhandled) => first_unhandled.position.saturating_sub(1),
            None => cursor.position,
        };
        Ok(DeliveryEnd { through, fault: end.fault })
    }
}

#[cfg(test)]
mod tests;
