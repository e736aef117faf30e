//! Links as bytes. Numbers are LEB128 varints; texts and lists are preceded by their length.
//!
//! ```text
//! opened (0 or 1, then the key), number of links
//! each link in the order of creation: code, counter + 1 or 0, status, created µs, created,
//!     changed − created, expires µs + 1 or 0, URL, tags, whether clicked, clicks
//! clicks: applied, total, bots, direct, hours, days, visitors of the last day, agents, referrers
//! ```
//! An ordinary reader writes it while the fold continues: see
//! [`View`](wellspring_host::view::contract::View).

use super::agent::FAMILIES;
use super::apply::{tags_are_fine, time_is_fine};
use super::clicks::{Clicks, DAY_US, Day, Detail, HOURS_KEPT};
use super::record::{MOST_POSITIONS, Record, Status};
use super::referrer::MAX_REFERRER_BYTES;
use super::state::{CodeOrder, Folded, Links};
use super::top::{Entry, FrequentNames};
use super::visitors::{FEW, Visitors};
use super::{Code, TargetRule};
use std::io::{self, Read, Write};
use wellspring_host::view::contract::SnapshotFault;
use wellspring_host::view::contract::packed::{Input, put, put_bytes};

pub(super) fn encode(folded: &Folded, out: &mut impl Write) -> io::Result<()> {
    // The count is taken before anything else: links created later are not written but folded
    // again. It is taken again if links are opened: links from before the opening would otherwise
    // be folded again and then be stored under their counters.
    let count = folded.count();
    let opened = folded.opened.get();
    let count = if opened.is_some() { folded.count() } else { count };
    match opened {
        Some(opened) => {
            put(out, 1)?;
            out.write_all(&opened.key)?;
        }
        None => put(out, 0)?,
    }
    put(out, count)?;
    for link in 0..count {
        let missing = || io::Error::other("a link has no record");
        let record = folded.record(link).ok_or_else(missing)?;
        let number = opened.and_then(|opened| folded.number_of(opened, record.code, link));
        put_record(out, &record, number)?;
        match folded.clicks(link) {
            None => put(out, 0)?,
            Some(clicks) => {
                put(out, 1)?;
                put_clicks(out, &clicks.detail())?;
            }
        }
    }
    Ok(())
}

fn put_record(out: &mut impl Write, record: &Record, number: Option<u64>) -> io::Result<()> {
    put(out, record.code.number())?;
    put(out, number.map_or(0, |number| number + 1))?;
    put(out, record.status.number().into())?;
    put(out, record.created_at_us)?;
    put(out, record.created)?;
    put(out, record.changed - record.created)?;
    put(out, record.expires_at_us.map_or(0, |expires_at_us| expires_at_us.saturating_add(1)))?;
    put(out, record.max_clicks.unwrap_or(0).into())?;
    put_bytes(out, record.url.as_bytes())?;
    put(out, record.tags.len() as u64)?;
    record.tags.iter().try_for_each(|tag| put_bytes(out, tag.as_bytes()))
}

fn put_clicks(out: &mut impl Write, detail: &Detail) -> io::Result<()> {
    for number in [detail.applied, detail.total, detail.bots, detail.direct] {
        put(out, number)?;
    }
    put(out, detail.hours.len() as u64)?;
    for &(hour, clicks) in &detail.hours {
        put(out, hour.into())?;
        put(out, clicks)?;
    }
    put(out, detail.days.len() as u64)?;
    for day in &detail.days {
        put(out, day.day.into())?;
        put(out, day.visitors.into())?;
        put(out, day.clicks)?;
    }
    match &detail.today {
        Visitors::Few(hashes) => {
            put(out, hashes.len() as u64)?;
            hashes.iter().try_for_each(|hash| out.write_all(&hash.to_le_bytes()))?;
        }
        Visitors::Many(registers) => {
            put(out, registers.len() as u64)?;
            out.write_all(registers)?;
        }
    }
    put(out, detail.agents.len() as u64)?;
    for &(family, clicks) in &detail.agents {
        put(out, family.into())?;
        put(out, clicks)?;
    }
    let entries = detail.referrers.entries();
    put(out, entries.len() as u64)?;
    for entry in entries {
        put_bytes(out, entry.name.as_bytes())?;
        put(out, entry.count)?;
        put(out, entry.excess)?;
    }
    Ok(())
}

/// Reads a view and judges its links' targets by this rule.
pub(super) fn decode(input: &mut impl Read, rule: TargetRule) -> Result<Links, SnapshotFault> {
    let mut input = Input::of(input);
    let mut links = Links::with_rule(rule);
    match input.byte()? {
        0 => {}
        1 => {
            let mut key = [0; 16];
            input.fill(&mut key)?;
            drop(links.folded.opened.set(CodeOrder::new(key)));
        }
        _ => return Err(SnapshotFault::Malformed("the flag for opened is neither 0 nor 1")),
    }
    let count = input.number()?;
    for link in 0..count {
        let (record, number) = read_record(&mut input, &links.targets)?;
        if links.folded.find(record.code).is_some() {
            return Err(SnapshotFault::Malformed("a code appears twice"));
        }
        links.insert(&record, number);
        match input.number()? {
            0 => {}
            1 => {
                let clicks = Clicks::of(read_clicks(&mut input)?);
                links.folded.clicks_or(link, || clicks);
            }
            _ => return Err(SnapshotFault::Malformed("the flag for clicked is neither 0 nor 1")),
        }
    }
    Ok(links)
}

fn read_record<R: Read>(
    input: &mut Input<'_, R>,
    rule: &TargetRule,
) -> Result<(Record, Option<u64>), SnapshotFault> {
    let code = Code::from_number(input.number()?)
        .ok_or(SnapshotFault::Malformed("a code has no number"))?;
    let number = input.number()?.checked_sub(1);
    let status = Status::from_number(input.small()?)
        .ok_or(SnapshotFault::Malformed("a status is unknown"))?;
    let (created_at_us, created) = (input.number()?, input.number()?);
    let changed = created.saturating_add(input.number()?);
    let expires_at_us = input.number()?.checked_sub(1);
    let max_clicks = u32::try_from(input.number()?)
        .map_err(|_| SnapshotFault::Malformed("no fold produces this maximum"))?;
    let url = input.text()?;
    let tags = input.list(Input::text)?;
    let (plain, verdict) = rule
        .judge_url(&url)
        .map_err(|_| SnapshotFault::Malformed("a URL is not allowed for a link"))?;
    if changed >= MOST_POSITIONS || !tags_are_fine(&tags) || !time_is_fine(expires_at_us) {
        return Err(SnapshotFault::Malformed("no fold produces this link"));
    }
    let record = Record {
        code,
        status,
        created_at_us,
        created,
        changed,
        expires_at_us,
        max_clicks: Some(max_clicks).filter(|most| *most > 0),
        url,
        plain,
        verdict,
        tags,
    };
    Ok((record, number))
}

fn read_clicks<R: Read>(input: &mut Input<'_, R>) -> Result<Detail, SnapshotFault> {
    let malformed = || SnapshotFault::Malformed("a link's click data exceeds its limits");
    let (applied, total) = (input.number()?, input.number()?);
    let (bots, direct) = (input.number()?, input.number()?);
    let hours = input.list(|input| Ok((input.small()?, input.number()?)))?.into();
    let days = input.list(|input| {
        let (day, visitors) = (input.small()?, input.small()?);
        Ok(Day { day, visitors, clicks: input.number()? })
    })?;
    let visitors = input.length()?;
    let today = if visitors <= FEW {
        let mut hashes = Vec::with_capacity(visitors);
        for _ in 0..visitors {
            let mut hash = [0; 8];
            input.fill(&mut hash)?;
            hashes.push(u64::from_le_bytes(hash));
        }
        Visitors::few(hashes)
    } else {
        let mut registers = vec![0; visitors];
        input.fill(&mut registers)?;
        Visitors::many(registers)
    };
    let agents = input.list(|input| Ok((input.small()?, input.number()?)))?;
    let entries = input.list(|input| {
        let name = input.text()?.into();
        Ok(Entry { name, count: input.number()?, excess: input.number()? })
    })?;
    let detail = Detail {
        applied,
        total,
        bots,
        direct,
        hours,
        days,
        today: today.ok_or_else(malformed)?,
        agents,
        referrers: FrequentNames::from_entries(entries).ok_or_else(malformed)?,
    };
    if is_sound(&detail) {
        Ok(detail)
    } else {
        Err(SnapshotFault::Malformed("clicks do not add up"))
    }
}

/// Whether every statistic accounts for all clicks and no number can overflow.
fn is_sound(detail: &Detail) -> bool {
    let Detail { applied, total, bots, direct, hours, days, today, agents, referrers } = detail;
    let named = referrers.entries();
    // Each click has its own position.
    let bounded = *applied < MOST_POSITIONS && total <= applied && bots <= total;
    let kept = hours.len() <= HOURS_KEPT
        && hours.iter().is_sorted_by(|a, b| a.0 < b.0)
        && sum(hours.iter().map(|&(_, clicks)| clicks)).is_some_and(|sum| sum <= *total);
    let daily = days.is_sorted_by(|a, b| a.day < b.day)
        && days.last().is_none_or(|last| u64::from(last.day) <= u64::MAX / DAY_US)
        && sum(days.iter().map(|day| day.clicks)) == Some(*total);
    let of_agents = sum(agents.iter().map(|&(_, clicks)| clicks)) == Some(*total)
        && agents.iter().all(|&(family, _)| usize::from(family) < FAMILIES.len());
    let of_referrers = sum(named.iter().map(|entry| entry.count))
        .and_then(|sum| sum.checked_add(*direct))
        == Some(*total)
        && named.iter().all(|e| e.excess < e.count && e.name.len() <= MAX_REFERRER_BYTES);
    bounded && kept && daily && of_agents && of_referrers && today.is_sound()
}

/// The sum of counts; `None` if one is 0.
fn sum(mut counts: impl Iterator<Item = u64>) -> Option<u64> {
    counts.try_fold(0u64, |sum, count| sum.checked_add(count).filter(|_| count > 0))
}
