//! Problem types of this face.

use wellspring_host::wire::problem::Retry;

wellspring_host::kinds! {
    SUBJECT_UNKNOWN 404 "subject-unknown" "Nothing is sealed for the data subject" Retry::No,
        "No key was ever made for the data subject, so there is nothing that an erasure could destroy. What was stored about it without a subject stays.",
        "Correct the name. GET /v1/subjects/{subject} counts the events that have it as a tag and are stored clear.",
        "nothing is sealed for student:8f14e45f" r#""field":"subject""#;
    ERASURE_BEGUN 409 "erasure-begun" "The erasure has begun" Retry::No,
        "The grace period of the erasure has ended, or it had none: its keys are destroyed. It cannot be cancelled.",
        "Nothing brings the data back.",
        "the erasure 4f1c09d2a87b4e6f is complete";
}
