/// Why bytes are not a library that this reader understands, and where.
package struct ELFError: Error, Equatable {
    /// What kind of reason it is.
    package enum Kind: Sendable {
        /// No ELF file at all.
        case notELF
        /// An ELF file of another machine or word size, or one that is no shared library.
        case wrongArchitecture
        /// Cut off or inconsistent.
        case damaged
    }

    package let kind: Kind
    /// The offset in the file of what is wrong.
    package let offset: Int
    package let reason: String
}
