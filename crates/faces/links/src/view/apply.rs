//! The fold: how an event changes the view. Every change is applied at most once even if its event
//! is applied again: a link remembers when it was created, last changed and last clicked.

use super::clicks::{Clicks, Detail};
use super::event::{ChangedData, ClickedData, CreatedData, Fact, SEALED};
use super::record::{Record, Status};
use super::state::{CodeOrder, Links};
use super::{Code, MAX_TAG_BYTES, MAX_TAGS, url};
use std::borrow::Cow;
use wellspring_host::view::contract::LogEvent;
use wellspring_types::Position;
use wellspring_types::moment::MAX_TIME_US;
use wellspring_types::valid::check_text;

impl Links {
    pub(super) fn fold(&mut self, event: &impl LogEvent) {
        match Fact::of(event.event_type(), event.tags(), event.data()) {
            Some(Fact::Clicked(code, click)) => self.clicked(event, code, &click),
            Some(Fact::Created(code, created)) => self.created(event, code, created),
            Some(Fact::Changed(code, changed)) => self.changed(event, code, changed),
            Some(Fact::Deleted(code)) => self.update(event, code, |record| {
                record.status = Status::Deleted;
            }),
            // The first one wins; a second can only exist if an append bypassed the condition.
            Some(Fact::Opened(key)) => drop(self.folded.opened.set(CodeOrder::new(key))),
            None => {}
        }
    }

    fn created(&mut self, event: &impl LogEvent, code: Code, created: CreatedData<'_>) {
        let position = event.position();
        let fine = tags_are_fine(&created.tags)
            && time_is_fine(created.expires_at_us)
            && created.max_clicks != Some(0);
        if self.folded.find(code).is_some() || !fine {
            return;
        }
        let Some(url) = folded_url(created.url, position) else { return };
        let Ok((plain, verdict)) = self.targets.judge_url(&url) else { return };
        let record = Record {
            code,
            status: Status::Enabled,
            created_at_us: event.recorded_at_us(),
            created: position,
            changed: position,
            expires_at_us: created.expires_at_us,
            max_clicks: created.max_clicks,
            url,
            plain,
            verdict,
            tags: created.tags,
        };
        self.insert(&record, created.number);
    }

    fn changed(&mut self, event: &impl LogEvent, code: Code, changed: ChangedData<'_>) {
        let ChangedData { url, enabled, expires_at_us, max_clicks, tags } = changed;
        let fine = tags.as_ref().is_none_or(|tags| tags_are_fine(tags))
            && time_is_fine(expires_at_us.flatten())
            && max_clicks != Some(Some(0));
        if !fine {
            return;
        }
        let url = match url.map(|url| folded_url(url, event.position())) {
            Some(None) => return,
            Some(Some(url)) if self.targets.judge_url(&url).is_err() => return,
            other => other.flatten(),
        };
        self.update(event, code, |record| {
            record.url = url.unwrap_or_else(|| std::mem::take(&mut record.url));
            record.expires_at_us = expires_at_us.unwrap_or(record.expires_at_us);
            record.max_clicks = max_clicks.unwrap_or(record.max_clicks);
            record.tags = tags.unwrap_or_else(|| std::mem::take(&mut record.tags));
            record.status = match enabled {
                Some(true) => Status::Enabled,
                Some(false) => Status::Disabled,
                None => record.status,
            };
        });
    }

    /// Changes a link that exists, is not deleted and has not applied this event.
    fn update(&mut self, event: &impl LogEvent, code: Code, change: impl FnOnce(&mut Record)) {
        let Some(link) = self.folded.find(code) else { return };
        let Some(mut record) = self.folded.record(link) else { return };
        if record.status != Status::Deleted && event.position() > record.changed {
            let was = record.clone();
            change(&mut record);
            // The URL was checked when the link was created or changed.
            let Ok((plain, verdict)) = self.targets.judge_url(&record.url) else { return };
            (record.plain, record.verdict) = (plain, verdict);
            record.changed = event.position();
            self.replace(link, &was, &record);
        }
    }

    fn clicked(&mut self, event: &impl LogEvent, code: Code, click: &ClickedData<'_>) {
        let Some(link) = self.folded.find_near(&mut self.recent, code) else { return };
        let clicks = match self.folded.clicks(link) {
            Some(clicks) => clicks,
            None => {
                // Clicks from before the link existed do not count.
                let created = self.folded.record(link).map_or(0, |record| record.created);
                if event.position() <= created {
                    return;
                }
                self.folded.clicks_or(link, || Clicks::of(Detail::after(created)))
            }
        };
        clicks.add(event.position(), event.recorded_at_us(), click);
    }
}

/// The URL that is folded of an event at a position: of a sealed one, where it is. `None` if the
/// event names another event's.
fn folded_url(url: Cow<'_, str>, position: Position) -> Option<String> {
    match url.strip_prefix(SEALED) {
        None => Some(url.into_owned()),
        Some("") => Some(format!("{SEALED}{position}")),
        Some(_) => None,
    }
}

/// Whether a target's text can be sent in a header unchanged.
pub(super) fn plainness(target: &url::Target<'_>, text: &str) -> bool {
    let mut location = Vec::with_capacity(text.len());
    target.push_location(&mut location);
    location == text.as_bytes()
}

/// Whether a time is representable as RFC 3339.
pub(super) fn time_is_fine(time_us: Option<u64>) -> bool {
    time_us.is_none_or(|time_us| time_us <= MAX_TIME_US)
}

/// Whether tags are few and short enough and all different.
pub(super) fn tags_are_fine(tags: &[String]) -> bool {
    let fine = |(at, tag): (usize, &String)| {
        check_text(tag, MAX_TAG_BYTES).is_ok() && !tags[..at].contains(tag)
    };
    tags.len() <= MAX_TAGS && tags.iter().enumerate().all(fine)
}
