/// Why a host, path or other pattern of the configuration is invalid; the caller adds the position.
struct PatternError: Error, CustomStringConvertible {
    /// The message for operators, without a subject: `has an empty segment`.
    let description: String

    init(_ description: String) { self.description = description }
}
