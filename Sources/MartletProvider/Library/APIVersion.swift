/// The version of the public API, in the sense of Semantic Versioning: a plugin that was built against an earlier minor
/// version of the same major version fits.
public let version = APIVersion(major: 1, minor: 0, patch: 0)

/// A version of the public API.
public struct APIVersion: Hashable, Sendable, CustomStringConvertible {
    public let major: Int
    public let minor: Int
    public let patch: Int

    public var description: String { "\(major).\(minor).\(patch)" }
}
