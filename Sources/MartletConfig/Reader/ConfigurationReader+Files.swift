extension ConfigurationReader {
    /// The content of the file under an optional key, which is read now; `nil` if the key is absent or the file cannot
    /// be read. Errors are recorded.
    ///
    /// For files that everyone may read, such as public keys; ``secret(_:)`` also reads one with a secret.
    /// - Parameter maximumBytes: a larger file is an error.
    public mutating func file(_ key: String, maximumBytes: Int) -> Located<[UInt8]>? {
        guard let node = node(key) else { return nil }
        return recorded(key) { () throws(ConfigurationError) in
            let path = try FilePath(decoding: node)
            do throws(FileReadError) {
                return Located(try readWholeFile(path.text, limit: maximumBytes), at: node.location)
            } catch {
                throw node.error(.configFileUnreadable, "cannot read \(quoted(path.text)): \(error.reason)")
            }
        }
    }
}
