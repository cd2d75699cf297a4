/// Why a host, path or other pattern of the configuration cannot be used; the compiler of the table adds the position.
struct PatternError: Error, CustomStringConvertible {
    /// For the operator, in a few words.
    let description: String

    init(_ description: String) { self.description = description }
}
