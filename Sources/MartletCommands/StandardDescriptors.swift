private import CLinux

/// Standard input, output and error.
package enum StandardDescriptors {
    /// Opens those that the process was started without, so that no file or socket of its own takes their numbers.
    ///
    /// Reading and writing them fails, as it does without them. To be called before anything is opened.
    package static func open() { martlet_open_standard_descriptors() }
}
