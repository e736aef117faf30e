//! Measurements, not tests: `cargo test --release -p wellspring-log index::bench -- --ignored
//! --nocapture`.

#![allow(clippy::disallowed_methods)] // a benchmark looks at the clock

use super::oracle_tests::Dice;
use super::sealed_writer::sealed_image;
use super::*;
use std::hint::black_box;
use std::time::{Duration, Instant};
use wellspring_format::record::EncodedEvents;
use wellspring_types::{Event, EventId, Query, QueryItem};

const EVENTS: u32 = 1_000_000;

/// One type of 20, a nearly unique tag, a tag of 10,000 and a tag of 50; an event id.
fn records() -> Vec<EncodedEvents> {
    let mut dice = Dice(5);
    let mut chunks = Vec::new();
    for rel in 0..EVENTS {
        if rel % 1000 == 0 {
            chunks.push(EncodedEvents::new());
        }
        let tags = [
            format!("order:{rel}"),
            format!("customer:{}", dice.below(10_000)),
            format!("region:{}", dice.below(50)),
        ];
        let tags = tags.each_ref().map(String::as_str);
        let mut event = Event::json(&format!("Type{}", dice.below(20)), &tags, "{}");
        event.id =
            Some(EventId((u128::from(dice.next()) << 64 | u128::from(dice.next())).to_le_bytes()));
        chunks.last_mut().unwrap().push(&event.as_ref()).unwrap();
    }
    chunks
}

fn each(what: &str, n: u64, mut f: impl FnMut(&mut Dice)) {
    let mut dice = Dice(1);
    let begin = Instant::now();
    (0..n).for_each(|_| f(&mut dice));
    println!("{what}: {} ns", begin.elapsed().as_nanos() as u64 / n);
}

fn queries(index: &SegmentIndex) {
    let newest = |what: &str, n, item: &dyn Fn(&mut Dice) -> QueryItem| {
        each(what, n, |dice| {
            let query = CompiledQuery::new(&Query { items: vec![item(dice)] });
            black_box(index.newest(&query, 0..EVENTS, &mut Work::unbounded()).unwrap());
        });
    };
    let one = |types: &[&str], tags: &[&str]| QueryItem::new(types, tags);
    newest("  newest, type", 100_000, &|_| one(&["Type3"], &[]));
    newest("  newest, rare tag", 100_000, &|d| {
        one(&[], &[&format!("order:{}", d.below(1_000_000))])
    });
    newest("  newest, absent tag", 100_000, &|d| {
        one(&[], &[&format!("none:{}", d.below(1_000_000))])
    });
    newest("  newest, type and tag of 100", 100_000, &|d| {
        one(&["Type3"], &[&format!("customer:{}", d.below(10_000))])
    });
    newest("  newest, type and tag of 20,000", 100_000, &|d| {
        one(&["Type3"], &[&format!("region:{}", d.below(50))])
    });
    newest("  newest, type, tag of 100, tag of 20,000", 20_000, &|d| {
        let tags = [format!("customer:{}", d.below(10_000)), format!("region:{}", d.below(50))];
        one(&["Type3"], &[&tags[0], &tags[1]])
    });
    newest("  newest, two tags of 20,000 that never meet", 20, &|_| {
        one(&[], &["region:1", "region:2"])
    });
    each("  find_id, absent", 100_000, |dice| {
        black_box(index.find_id(&u128::from(dice.next()).to_le_bytes(), 0..EVENTS).unwrap());
    });
    let mut rels = Vec::new();
    let begin = Instant::now();
    let two_types = CompiledQuery::shared(&Query::item(&["Type1", "Type2"], &[]));
    let mut cursor = index.cursor(&two_types, 0..EVENTS, false);
    while cursor.next_chunk(&mut rels, 1_000, &mut Work::unbounded()).unwrap() {}
    println!(
        "  cursor over two types: {} ns per event",
        begin.elapsed().as_nanos() as usize / rels.len()
    );
    println!("  memory {} MB", index.memory_bytes() / 1_000_000);
}

#[test]
#[ignore = "a benchmark"]
fn figures() {
    let chunks = records();
    let begin = Instant::now();
    let mut bytes = 0;
    for chunk in &chunks {
        for record in chunk.iter() {
            let one = Instant::now();
            bytes += record.byte_len();
            black_box(one.elapsed());
        }
    }
    black_box(bytes);
    let parse = begin.elapsed().as_nanos() / u128::from(EVENTS);
    let mut writer = ActiveWriter::new(1);
    let begin = Instant::now();
    let mut slowest = Duration::ZERO;
    for (i, chunk) in chunks.iter().enumerate() {
        if [1, 10, 100, 300].contains(&i) {
            let push = begin.elapsed().as_nanos() / (i as u128 * 1000);
            println!("push of the first {i},000: {push} ns, parsing and clock included");
        }
        for record in chunk.iter() {
            let one = Instant::now();
            writer.push(0, &record);
            slowest = slowest.max(one.elapsed());
        }
    }
    let push = begin.elapsed().as_nanos() / u128::from(EVENTS);
    println!("push: {} ns less {parse} ns for parsing and clock; slowest {slowest:?}", push);
    let active = writer.index().clone();
    queries(&SegmentIndex::Active(active.clone()));
    let begin = Instant::now();
    let image = sealed_image(&active, &[SegmentExtent { base: active.base(), end: 0, salt: 0 }], 7);
    println!("seal: {:?}, {} MB", begin.elapsed(), image.len() / 1_000_000);
    // A real file, so that the measurements include system calls.
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileExt;
        #[derive(Debug)]
        struct Disk(std::fs::File);
        impl ReadAt for Disk {
            fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
                FileExt::read_exact_at(&self.0, buf, offset)
            }
            fn len(&self) -> io::Result<u64> {
                Ok(self.0.metadata()?.len())
            }
        }
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&image, 0).unwrap();
        let sealed = SealedIndex::open(Arc::new(Disk(file))).unwrap();
        let _ = sealed.find_id(&[0; 16], 0..EVENTS).unwrap();
        queries(&SegmentIndex::Sealed(Arc::new(sealed)));
    }
}

/// The way of one event through the indexes of a log as it is filled: push, seal, two merges.
/// Orders have a tag of 100,000 and one of their own, clicks one of ten.
#[test]
#[ignore = "a benchmark"]
fn filling() {
    let orders = |rel: u32, dice: &mut Dice| {
        vec![format!("customer:{}", dice.below(100_000)), format!("order:{rel}")]
    };
    let clicks = |rel: u32, _: &mut Dice| vec![format!("page:{}", rel % 10)];
    filled("orders", &orders);
    filled("clicks", &clicks);
}

/// Processor time of this thread, which other processes change less than the time that passes.
fn spent() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn filled(shape: &str, tags: &dyn Fn(u32, &mut Dice) -> Vec<String>) {
    const ACTIVE_BYTES: usize = 8 << 20;
    let mut dice = Dice(5);
    let mut chunks = Vec::new();
    for rel in 0..EVENTS {
        if rel % 1000 == 0 {
            chunks.push(EncodedEvents::new());
        }
        let tags = tags(rel, &mut dice);
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        let event = Event::json("OrderPlaced", &tags, "{}");
        chunks.last_mut().unwrap().push(&event.as_ref()).unwrap();
    }
    let (mut pushing, mut sealing) = (Duration::ZERO, Duration::ZERO);
    let mut sealed = Vec::new();
    let mut writer = ActiveWriter::new(1);
    let mut seal = |writer: &ActiveWriter| {
        let begin = spent();
        let active = writer.index();
        let image =
            sealed_image(active, &[SegmentExtent { base: active.base(), end: 0, salt: 0 }], 7);
        sealing += spent() - begin;
        sealed.push(Arc::new(SealedIndex::open(Arc::new(image)).unwrap()));
        active.base() + u64::from(active.len())
    };
    for chunk in &chunks {
        if writer.is_full(ACTIVE_BYTES) {
            writer = ActiveWriter::new(seal(&writer));
        }
        let begin = spent();
        chunk.iter().for_each(|record| writer.push(0, &record));
        pushing += spent() - begin;
    }
    seal(&writer);
    let segments = sealed.len();
    let begin = spent();
    let mut merging = |indexes: &[Arc<SealedIndex>]| {
        let file = std::cell::RefCell::new(Vec::new());
        merge(indexes, 7, &std::sync::atomic::AtomicBool::new(false), &file).unwrap();
        Arc::new(SealedIndex::open(Arc::new(file.into_inner())).unwrap())
    };
    let once: Vec<_> = sealed.chunks(4).map(&mut merging).collect();
    let first = spent() - begin;
    once.chunks(4).for_each(|indexes| drop(merging(indexes)));
    let each = |spent: Duration| spent.as_nanos() as u64 / u64::from(EVENTS);
    println!(
        "{shape}: push {} ns, seal {} ns ({segments} segments), merges {} and {} ns an event",
        each(pushing),
        each(sealing),
        each(first),
        each((spent() - begin) - first)
    );
}

/// Reads of a sealed index's file: a tag of ten events, and two common tags that never meet.
#[cfg(unix)]
#[test]
#[ignore = "a benchmark"]
fn keyed() {
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    static READS: AtomicU64 = AtomicU64::new(0);
    #[derive(Debug)]
    struct Disk(std::fs::File);
    impl ReadAt for Disk {
        fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
            READS.fetch_add(1, Relaxed);
            FileExt::read_exact_at(&self.0, buf, offset)
        }
        fn len(&self) -> io::Result<u64> {
            Ok(self.0.metadata()?.len())
        }
    }
    let mut dice = Dice(5);
    let mut writer = ActiveWriter::new(1);
    for rel in 0..EVENTS {
        let region = format!("region:{}", rel % 50);
        let tags = [&format!("customer:{}", dice.below(100_000)), region.as_str()];
        let mut encoded = EncodedEvents::new();
        encoded.push(&Event::json("OrderPlaced", &tags, "{}").as_ref()).unwrap();
        encoded.iter().for_each(|record| writer.push(rel, &record));
    }
    let extents = [SegmentExtent { base: 1, end: 0, salt: 0 }];
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&sealed_image(writer.index(), &extents, 7), 0).unwrap();
    let opened = || {
        let file = Arc::new(Disk(file.try_clone().unwrap()));
        SegmentIndex::Sealed(Arc::new(SealedIndex::open(file).unwrap()))
    };
    let index = opened();
    let measure = |what: &str, n: u64, f: &mut dyn FnMut(&mut Dice)| {
        let (reads, begin) = (READS.load(Relaxed), spent());
        each(what, n, |dice| f(dice));
        let spent = (spent() - begin).as_nanos() as u64 / n;
        println!(
            "  {spent} ns of processor time, {:.2} reads",
            (READS.load(Relaxed) - reads) as f64 / n as f64
        );
    };
    let mut tag = |dice: &mut Dice| {
        let customer = format!("customer:{}", dice.below(100_000));
        let query = CompiledQuery::shared(&Query::item(&[], &[&customer]));
        let (mut rels, mut offsets) = (Vec::new(), Vec::new());
        let mut cursor = index.cursor(&query, 0..EVENTS, false);
        while cursor.next_chunk(&mut rels, 256, &mut Work::unbounded()).unwrap() {}
        index.offsets(&rels, &mut offsets).unwrap();
        black_box(offsets);
    };
    measure("a tag of ten, at first", 50, &mut tag);
    measure("a tag of ten", 50_000, &mut tag);
    measure("a tag of ten, again", 50_000, &mut tag);
    let mut two = |_: &mut Dice| {
        let query = CompiledQuery::new(&Query::item(&[], &["region:1", "region:2"]));
        assert_eq!(index.newest(&query, 0..EVENTS, &mut Work::unbounded()).unwrap(), None);
    };
    measure("two common tags that never meet", 50_000, &mut two);
    // As in a log whose filters have no room.
    set_sealed_index_budget_bytes(0);
    let index = opened();
    let mut two = |_: &mut Dice| {
        let query = CompiledQuery::new(&Query::item(&[], &["region:1", "region:2"]));
        assert_eq!(index.newest(&query, 0..EVENTS, &mut Work::unbounded()).unwrap(), None);
    };
    measure("the same without room", 500, &mut two);
}
