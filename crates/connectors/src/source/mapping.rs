//! Maps a record to an event.

use super::definition::{RecordData, SourceDefinition};
use super::origin::{EventIds, RECORD_REJECTED, SOURCE_ADVANCED};
use super::parts::RecordParts;
use super::reject_reason::RejectReason;
use super::template::{Rendering, Template};
use wellspring_kafka::Record;
use wellspring_log::EncodedEvents;
use wellspring_types::limits::MAX_METADATA_VALUE_BYTES;
use wellspring_types::{DataKind, EventRef};

/// Maps records to events; reuses its buffers.
pub(super) struct Mapper {
    topic: String,
    event_type: Template,
    tags: Vec<Template>,
    data: RecordData,
    type_text: String,
    tag_texts: Vec<String>,
}

impl Mapper {
    /// Creates a mapper for the definition.
    pub(super) fn new(definition: &SourceDefinition) -> Mapper {
        Mapper {
            topic: definition.topic.clone(),
            event_type: definition.event_type.clone(),
            tags: definition.tags.clone(),
            data: definition.data,
            type_text: String::new(),
            tag_texts: Vec::new(),
        }
    }

    /// Adds the event of a record, for which there must be room; returns its payload's size in
    /// bytes. Without `ids` the event gets no id.
    ///
    /// # Errors
    /// Why the record cannot become an event, as a sentence without its full stop; nothing is added
    /// then.
    pub(super) fn push(
        &mut self,
        events: &mut EncodedEvents,
        record: &Record,
        ids: Option<&EventIds>,
    ) -> Result<u64, RejectReason> {
        let parts = RecordParts::new(&self.topic, record);
        let (data, kind) = match self.data {
            RecordData::Json => {
                let json = parts.json()?;
                (json.unwrap_or("null").as_bytes(), DataKind::Json)
            }
            RecordData::Binary => (record.value.as_deref().unwrap_or_default(), DataKind::Binary),
        };
        render_type(&self.event_type, &parts, &mut self.type_text)?;
        let tag_count = render_tags(&self.tags, &parts, &mut self.tag_texts)?;
        let tags: Vec<&str> = self.tag_texts[..tag_count].iter().map(String::as_str).collect();
        let (partition, offset) = (record.partition.to_string(), record.offset.to_string());
        let timestamp = parts.timestamp();
        let mut metadata = vec![
            ("kafka-topic", self.topic.as_str()),
            ("kafka-partition", &partition),
            ("kafka-offset", &offset),
        ];
        if let Some(timestamp) = &timestamp {
            metadata.push(("kafka-timestamp", timestamp));
        }
        let key = record.key.as_deref().filter(|key| key.len() <= MAX_METADATA_VALUE_BYTES);
        if let Some(key) = key.and_then(|key| std::str::from_utf8(key).ok()) {
            metadata.push(("kafka-key", key));
        }
        let event = EventRef {
            event_type: &self.type_text,
            tags: &tags,
            data,
            kind,
            id: ids.map(|ids| ids.id(record.offset)),
            metadata: &metadata,
        };
        events.push(&event).map_err(|invalid| format!("the event's {invalid}"))?;
        Ok(data.len() as u64)
    }
}

fn render_type(
    template: &Template,
    parts: &RecordParts<'_>,
    text: &mut String,
) -> Result<(), RejectReason> {
    text.clear();
    if template.render(parts, text).map_err(|fault| format!("type: {fault}"))? == Rendering::Omitted
    {
        return Err(format!("the record has no value for the type {}", template.as_str()).into());
    }
    // An event of these types, with tags from a record, could be mistaken for a cursor.
    if text == SOURCE_ADVANCED || text == RECORD_REJECTED {
        return Err(format!("the type {text} is reserved for sources").into());
    }
    Ok(())
}

/// Renders the tags without duplicates into the first texts; returns their number.
fn render_tags(
    templates: &[Template],
    parts: &RecordParts<'_>,
    texts: &mut Vec<String>,
) -> Result<usize, RejectReason> {
    let mut count = 0;
    for template in templates {
        if texts.len() == count {
            texts.push(String::new());
        }
        let (earlier, rest) = texts.split_at_mut(count);
        let text = &mut rest[0];
        text.clear();
        let rendering = template
            .render(parts, text)
            .map_err(|fault| format!("tag {}: {fault}", template.as_str()))?;
        if rendering == Rendering::Complete && !earlier.contains(text) {
            count += 1;
        }
    }
    Ok(count)
}

#[cfg(test)]
#[path = "mapping_tests.rs"]
mod tests;
