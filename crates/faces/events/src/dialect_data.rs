//! Example events of go-crablet's benchmarks: courses, students, enrolments. Made from counters, so
//! that every load is the same.

use wellspring_types::Event;

/// The amount of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) name: &'static str,
    /// Courses defined.
    pub(crate) courses: u64,
    /// Students registered.
    pub(crate) students: u64,
    /// Enrolments, all different.
    pub(crate) enrollments: u64,
}

impl Size {
    /// For trying out.
    pub(crate) const TINY: Size = Size { name: "tiny", courses: 5, students: 10, enrollments: 18 };
    /// For benchmarks.
    pub(crate) const SMALL: Size =
        Size { name: "small", courses: 1_000, students: 10_000, enrollments: 50_000 };
}

const CATEGORIES: [&str; 5] = ["Computer Science", "Mathematics", "Physics", "History", "Arts"];

/// The events, in an order in which they could have happened.
pub(crate) fn example_events(size: Size) -> impl Iterator<Item = Event> {
    let courses = (1..=size.courses).map(|n| {
        let category = CATEGORIES[n as usize % CATEGORIES.len()];
        let data = format!(r#"{{"course_id":"course-{n}","category":"{category}"}}"#);
        Event::json("CourseDefined", &[&format!("course_id:course-{n}")], &data)
    });
    let students = (1..=size.students).map(|n| {
        let (major, year) = (CATEGORIES[n as usize % CATEGORIES.len()], 1 + n % 4);
        let data = format!(r#"{{"student_id":"student-{n}","major":"{major}","year":{year}}}"#);
        Event::json("StudentRegistered", &[&format!("student_id:student-{n}")], &data)
    });
    let enrollments = (0..size.enrollments).map(move |n| {
        // Each round pairs every student with the next course.
        let (student, round) = (1 + n % size.students, n / size.students);
        let course = 1 + (student + round) % size.courses;
        let data = format!(r#"{{"student_id":"student-{student}","course_id":"course-{course}"}}"#);
        let tags = [format!("student_id:student-{student}"), format!("course_id:course-{course}")];
        Event::json("StudentEnrolledInCourse", &[&tags[0], &tags[1]], &data)
    });
    courses.chain(students).chain(enrollments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn sizes_are_as_announced_and_no_enrolment_repeats() {
        for size in [Size::TINY, Size::SMALL] {
            let events: Vec<Event> = example_events(size).collect();
            assert_eq!(events.len() as u64, size.courses + size.students + size.enrollments);
            let distinct: HashSet<_> =
                events.iter().map(|e| (e.event_type.clone(), e.tags.clone())).collect();
            assert_eq!(distinct.len(), events.len());
            assert!(events.iter().all(|e| e.as_ref().check().is_ok()));
        }
    }
}
