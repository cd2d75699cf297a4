/// A piece of a YAML document with positions on every part. (Completed by the reader's files.)
public struct ConfigurationNode: Sendable {
    public let location: SourceLocation
}
