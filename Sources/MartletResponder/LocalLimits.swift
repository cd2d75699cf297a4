/// Limits for requests handled in this process.
package enum LocalLimits {
    /// How much of a body a handler gets; the rest is counted only.
    package static let bodyBytes = 256 * 1024
    /// How many fields the gateway may add to a head, beside those of the client.
    package static let ownFields = 256
    /// How long a handler may take.
    package static let timeout = Duration.seconds(10)
}
