//! Why a setting, a scenario or a file of the user cannot be used.

wellspring_readable::sentence_error! {
    /// What is wrong and where. For the user.
    pub Invalid
}
