//! Why a definition of a sink or a source cannot be used.

wellspring_readable::sentence_error! {
    /// A part of a definition is wrong. For its author.
    pub DefinitionError
}
