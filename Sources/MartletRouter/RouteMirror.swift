package import MartletConfig

/// Which requests of a route are copied for another upstream.
package struct RouteMirror: Sendable {
    /// The field that marks a copy: no client can send it while a route has a mirror.
    package static let fieldName = "X-Mirrored"

    /// The index of the upstream in the configuration.
    package let upstream: Int
    package let percentage: SamplePercentage

    /// Whether a request is copied.
    /// - Parameter random: any number is as likely as any other.
    package func includes(_ random: UInt64) -> Bool {
        random % UInt64(SamplePercentage.all.millionths) < UInt64(max(percentage.millionths, 0))
    }
}
