//! However damaged, a sealed index never causes a wrong answer or a panic.

use super::oracle_tests::{Dice, EXTENT, active, events, item};
use super::sealed_writer::sealed_image;
use super::*;
use proptest::prelude::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use wellspring_types::Query;

/// All queries of an index, or the first error.
fn ask(index: &SegmentIndex) -> Result<Vec<Vec<u32>>, IndexError> {
    let (mut answers, mut dice) = (Vec::new(), Dice(77));
    let len = index.len();
    if len > 5_000 {
        return Err(IndexError::NoSuchEvent { rel: 0, len }); // implausible: skipped to save time
    }
    answers.push(vec![len, index.base() as u32]);
    let mut offsets = Vec::new();
    index.offsets(&(0..len).collect::<Vec<_>>(), &mut offsets)?;
    answers.push(offsets);
    for _ in 0..25 {
        let item = item(&mut dice, &[], 4, 9);
        let query = CompiledQuery::shared(&Query { items: vec![item] });
        let found = index.newest(&query, 0..len, &mut Work::unbounded())?;
        answers.push(found.into_iter().map(|(rel, _)| rel).collect());
        let mut rels = Vec::new();
        let mut cursor = index.cursor(&query, 0..len, true);
        while cursor.next_chunk(&mut rels, 10_000, &mut Work::unbounded())? {}
        answers.push(rels);
        answers.push(index.find_id(&[dice.below(42) as u8; 16], 0..len)?.into_iter().collect());
        let key = format!("key {}", dice.below(32));
        answers.push(index.find_key(&key, 0..len)?.into_iter().collect());
    }
    let mut counts = Vec::new();
    let types = index.types(len)?;
    counts.extend(types.iter().map(|(name, count)| name.len() as u32 + *count as u32));
    let tags = index.page(TermKind::Tag, &TermPage::ALL, len / 2)?;
    counts.extend(tags.iter().map(|(tag, count)| tag.len() as u32 * 1000 + *count as u32));
    answers.push(counts);
    Ok(answers)
}

fn open(image: Vec<u8>) -> Result<SegmentIndex, IndexError> {
    Ok(SegmentIndex::Sealed(Arc::new(SealedIndex::open(Arc::new(image))?)))
}

fn image() -> &'static (Vec<u8>, Vec<Vec<u32>>) {
    static IMAGE: OnceLock<(Vec<u8>, Vec<Vec<u32>>)> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let image = sealed_image(&active(&events(&mut Dice(21), 900, 4, 9)), &[EXTENT], 5);
        let answers = ask(&open(image.clone()).unwrap()).unwrap();
        (image, answers)
    })
}

fn right_or_refused(damaged: Vec<u8>) {
    if let Ok(answers) = open(damaged).and_then(|index| ask(&index)) {
        assert_eq!(&answers, &image().1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn a_flipped_byte_is_refused_or_harmless(at in any::<prop::sample::Index>(), flip in 1u8..) {
        let mut image = image().0.clone();
        let at = at.index(image.len());
        image[at] ^= flip;
        right_or_refused(image);
    }

    #[test]
    fn a_truncated_or_lengthened_file_is_refused(at in any::<prop::sample::Index>()) {
        let mut image = image().0.clone();
        image.truncate(at.index(image.len()));
        prop_assert!(open(image.clone()).is_err());
        image.resize(self::image().0.len() + 1, 0);
        prop_assert!(open(image).is_err());
    }

    /// With checksums recomputed, only bounds and structure can be checked, and nothing may panic.
    #[test]
    fn bytes_that_lie_with_good_checksums_never_panic(
        at in any::<prop::sample::Index>(), flip in 1u8.., header in any::<bool>(),
    ) {
        let mut image = image().0.clone();
        let limit = if header { file::header_bytes(file::VERSION) - 4 } else { image.len() };
        let at = at.index(limit);
        image[at] ^= flip;
        mend(&mut image);
        let _ = open(image).and_then(|index| ask(&index));
    }
}

/// Recomputes the checksums of the directories, the filter, the dictionaries' blocks and the
/// header.
fn mend(image: &mut [u8]) {
    use wellspring_format::record::{read_u32, read_u64};
    let section = |image: &[u8], i: usize| {
        let entry = &image[40 + 24 * i..];
        let (offset, len) = (read_u64(entry, 0) as usize, read_u64(entry, 8) as usize);
        let fits = offset.checked_add(len).is_some_and(|end| end <= image.len());
        if fits { offset..offset + len } else { 0..0 }
    };
    let crc = |image: &[u8], range: Range<usize>| crc32c::crc32c(&image[range]).to_le_bytes();
    for terms in [2, 4, 6, 8, 10] {
        let (blocks, directory) = (section(image, terms), section(image, terms + 1));
        let per_block = if terms < 8 { 32 } else { 128 };
        let count = read_u32(image, 40 + 24 * terms + 16).div_ceil(per_block) as usize;
        for block in 0..count.min(directory.len() / 16) {
            let entry = directory.start + block * 16;
            let end = match block + 1 {
                next if next < count && directory.len() >= (next + 1) * 16 => {
                    read_u64(image, entry + 24)
                }
                _ => blocks.len() as u64,
            };
            let start = read_u64(image, entry + 8);
            if start <= end && end <= blocks.len() as u64 {
                let bytes = blocks.start + start as usize..blocks.start + end as usize;
                let crc = crc(image, bytes);
                image[entry + 4..entry + 8].copy_from_slice(&crc);
            }
        }
    }
    for whole in [3, 5, 7, 9, 11, 13] {
        let crc = crc(image, section(image, whole));
        image[40 + 24 * whole + 20..][..4].copy_from_slice(&crc);
    }
    let end = file::header_bytes(file::VERSION) - 4;
    let crc = crc(image, 0..end);
    image[end..end + 4].copy_from_slice(&crc);
}

#[test]
fn an_unknown_version_is_named() {
    let mut image = image().0.clone();
    image[8] = 4;
    assert!(matches!(open(image), Err(IndexError::Version(4))));
}

/// A file whose reads sometimes fail.
#[derive(Debug)]
struct Flaky {
    image: Vec<u8>,
    reads: AtomicU64,
}

impl ReadAt for Flaky {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if Dice(self.reads.fetch_add(1, Ordering::Relaxed)).below(4) == 0 {
            return Err(io::Error::other("the disk is thinking"));
        }
        self.image.read_exact_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.image.len() as u64)
    }
}

#[test]
fn a_cursor_loses_nothing_when_reads_fail_and_are_retried() {
    let whole = open(image().0.clone()).unwrap();
    let flaky = Flaky { image: image().0.clone(), reads: AtomicU64::new(0) };
    let flaky: Arc<dyn ReadAt> = Arc::new(flaky);
    let opened = (0..50).find_map(|_| SealedIndex::open(flaky.clone()).ok());
    let flaky = SegmentIndex::Sealed(Arc::new(opened.unwrap()));
    let mut failures = 0;
    for round in 0..200u64 {
        let mut dice = Dice(round);
        let items = (0..2).map(|_| item(&mut dice, &[], 4, 9)).collect();
        let (query, down) = (CompiledQuery::shared(&Query { items }), round % 2 == 0);
        let mut wanted = Vec::new();
        let mut cursor = whole.cursor(&query, 0..900, down);
        while cursor.next_chunk(&mut wanted, 1_000, &mut Work::unbounded()).unwrap() {}
        let mut retry = |error| match error {
            IndexError::Io(_) => failures += 1,
            other => panic!("{other}"),
        };
        let mut cursor = flaky.cursor(&query, 0..900, down);
        while let Err(error) = cursor.prepare(&mut Work::unbounded()) {
            retry(error);
        }
        let mut got = Vec::new();
        loop {
            match cursor.next_chunk(&mut got, 20, &mut Work::unbounded()) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => retry(error),
            }
        }
        assert_eq!(got, wanted);
    }
    assert!(failures > 100);
}

#[test]
fn opening_reads_the_header_and_an_absent_term_the_filter_only() {
    #[derive(Debug)]
    struct Counting(Vec<u8>, AtomicU64);
    impl ReadAt for Counting {
        fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.read_exact_at(buf, offset)
        }
        fn len(&self) -> io::Result<u64> {
            Ok(self.0.len() as u64)
        }
    }
    let file = Arc::new(Counting(image().0.clone(), AtomicU64::new(0)));
    let index = SegmentIndex::Sealed(Arc::new(SealedIndex::open(file.clone()).unwrap()));
    assert_eq!(file.1.load(Ordering::Relaxed), 1);
    let mut passed = 0;
    for i in 0..100 {
        let before = file.1.load(Ordering::Relaxed);
        let absent = Query::item(&["T0"], &[&format!("absent:{i}")]);
        let absent = CompiledQuery::new(&absent);
        assert_eq!(index.newest(&absent, 0..900, &mut Work::unbounded()).unwrap(), None);
        passed += u64::from(i > 0 && file.1.load(Ordering::Relaxed) > before);
    }
    assert!(passed <= 2, "{passed}");
}
