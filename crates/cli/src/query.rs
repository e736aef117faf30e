//! The options that select events, shared by `export` and `tail`.

use wellspring_client::endpoint::percent_encode;

/// Which events.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct QueryArgs {
    /// Only events of this type; repeatable: any of the types
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only events with this tag; repeatable: all of the tags
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// A query as JSON: {"items":[{"types":[…],"tags":[…]},…]}
    #[arg(long, value_name = "JSON", conflicts_with_all = ["types", "tags"])]
    query: Option<String>,
    /// Only events recorded at this time or later, as in 2026-11-28T09:30:00+01:00
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only events recorded before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
}

impl QueryArgs {
    /// Appends the parameters to a path.
    pub(crate) fn add_to(&self, path: &mut String) {
        for event_type in &self.types {
            add_parameter(path, "type", event_type);
        }
        for tag in &self.tags {
            add_parameter(path, "tag", tag);
        }
        if let Some(query) = &self.query {
            add_parameter(path, "query", query);
        }
        for (name, time) in [("since", &self.since), ("until", &self.until)] {
            if let Some(time) = time {
                add_parameter(path, name, time);
            }
        }
    }
}

/// Appends one parameter to a path.
pub(crate) fn add_parameter(path: &mut String, name: &str, value: &str) {
    path.push(if path.contains('?') { '&' } else { '?' });
    path.push_str(name);
    path.push('=');
    path.push_str(&percent_encode(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_repeat() {
        let args = QueryArgs {
            types: vec!["A".into(), "B&C".into()],
            tags: vec!["x:1".into()],
            query: None,
            since: Some("2026-01-01T00:00:00+01:00".into()),
            until: None,
        };
        let mut path = "/v1/events".to_owned();
        args.add_to(&mut path);
        assert_eq!(
            path,
            "/v1/events?type=A&type=B%26C&tag=x%3A1&since=2026-01-01T00%3A00%3A00%2B01%3A00"
        );
    }
}
