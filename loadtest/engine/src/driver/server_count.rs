//! How many requests the server says it has handled (check C18).

use super::ask::ask;
use crate::invalid::Invalid;
use crate::plan::{Protocol, TlsTerms};
use crate::target::Target;
use crate::workload::OwnedRequest;
use wellspring_readable::prometheus;

/// A counter of a Prometheus text page, e.g. `http_requests_total` of `/metrics`.
#[derive(Clone, Debug)]
pub struct ServerCount {
    /// The page.
    pub target: Target,
    /// The metric's name, optionally with labels: `name{route="/e"}`. All samples of the name that
    /// have these labels are added.
    pub metric: String,
    /// How TLS is spoken with it.
    pub tls: TlsTerms,
}

impl ServerCount {
    /// Reads the counter.
    ///
    /// # Errors
    /// In words, if the page cannot be read or does not have the metric.
    pub fn read(&self) -> Result<u64, Invalid> {
        let request = OwnedRequest {
            method: "GET".into(),
            path: self.target.path.clone(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        let answer = ask(&self.target, Protocol::Http1, &self.tls, 5_000, request)
            .map_err(|error| error.to_string())?;
        if answer.status != 200 {
            return Err(format!("{} answered {}", self.target.url(), answer.status).into());
        }
        let text = String::from_utf8_lossy(&answer.body);
        let sum = prometheus::sum(&text, &self.metric);
        // A counter is whole and positive.
        sum.map(|sum| sum as u64).ok_or_else(|| {
            Invalid::new(format!(
                "{} does not have the metric {:?}",
                self.target.url(),
                self.metric
            ))
        })
    }
}
