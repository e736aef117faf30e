//! Why an argument of the command line cannot be used.

wellspring_readable::sentence_error! {
    /// What an argument must be. Clap prints it.
    pub(crate) ArgumentError
}
