package import MartletCore

/// `tracing:` — where traces of requests are sent, and of how many.
@frozen package struct TracingConfiguration: Sendable {
    /// Whose trace contexts are continued.
    @frozen package enum Parent: String, ConfigurationChoice {
        /// Those of peers in `trusted_proxies`.
        case trusted
        case none
    }

    /// How spans name the caller.
    @frozen package enum SubjectForm: String, ConfigurationChoice { case off, hash }

    /// A field of the requests to the collector.
    @frozen package struct Header: Sendable {
        package let name: String
        package let value: Secret

        package init(name: String, value: Secret) { (self.name, self.value) = (name, value) }
    }

    /// The base URL of the collector, to which `/v1/traces` is added.
    package var collector: Located<URLText>
    package var sample = SamplePercentage(millionths: 10_000)
    package var parent = Parent.trusted
    package var subject = SubjectForm.off
    package var headers: [Header] = []

    package init(collector: Located<URLText>) { self.collector = collector }

    /// Where spans are sent to.
    package var url: String {
        var base = collector.value.text
        while base.utf8.last == 0x2F { base.removeLast() }
        return base + "/v1/traces"
    }
}
