//! How many requests the server says it has handled (check C18).

<<<<<<< HEAD
use super::ask::{OwnedRequest, ask};
use crate::plan::{Protocol, TlsTerms};
=======
use super::ask::ask;
use crate::plan::Protocol;
use crate::prometheus;
>>>>>>> w21-a
use crate::target::Target;
use crate::workload::OwnedRequest;

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
    pub fn read(&self) -> Result<u64, String> {
        let request = OwnedRequest {
            method: "GET".into(),
            path: self.target.path.clone(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        let answer = ask(&self.target, Protocol::Http1, &self.tls, 5_000, request)
            .map_err(|error| error.to_string())?;
        if answer.status != 200 {
            return Err(format!("{} answered {}", self.target.url(), answer.status));
        }
        let text = String::from_utf8_lossy(&answer.body);
        let sum = prometheus::sum(&text, &self.metric);
        // A counter is whole and positive.
        sum.map(|sum| sum as u64).ok_or_else(|| {
            format!("{} does not have the metric {:?}", self.target.url(), self.metric)
        })
    }
}
<<<<<<< HEAD

/// The sum of all samples of a metric; `None` without any.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a whole, positive counter
fn sum(page: &str, metric: &str) -> Option<u64> {
    let mut sum: Option<f64> = None;
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let Some(rest) = line.strip_prefix(metric) else { continue };
        let value = if let Some(labelled) = rest.strip_prefix('{') {
            labelled.rsplit_once('}').map(|(_, value)| value)
        } else {
            rest.starts_with(' ').then_some(rest)
        };
        let number = value.and_then(|value| value.split_whitespace().next()?.parse::<f64>().ok());
        if let Some(number) = number {
            *sum.get_or_insert(0.0) += number;
        }
    }
    sum.map(|sum| sum as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_name_are_added_and_others_left_alone() {
        let page =
            "# HELP a_total x\na_total{r=\"/x\"} 3\na_total{r=\"} 9\"} 4\na_total_more 9\nb 1\n";
        assert_eq!(sum(page, "a_total"), Some(7));
        assert_eq!(sum(page, "a_total{r=\"/x\"}"), Some(3));
        assert_eq!(sum(page, "b"), Some(1));
        assert_eq!(sum(page, "c"), None);
    }
}
=======
>>>>>>> w21-a
