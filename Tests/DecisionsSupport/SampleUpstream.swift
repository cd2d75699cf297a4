import MartletCore

@testable package import MartletConfig

/// Configurations of upstreams.
package enum SampleUpstream {
    private static let somewhere = SourceLocation(file: "config.yaml", line: 1, column: 1)

    package static func configuration(_ name: String, _ endpoints: [EndpointAddress]) -> UpstreamConfiguration {
        UpstreamConfiguration(
            name: Located(name, at: somewhere),
            members: endpoints.map { EndpointConfiguration(Located($0, at: somewhere)) },
            timeouts: UpstreamTimeouts(), host: .keep, balance: .roundRobin)
    }

    package static func address(_ number: Int) -> EndpointAddress { .http(host: "10.0.0.\(number)", port: 80) }

    package static func addresses(_ numbers: Int...) -> [EndpointAddress] { numbers.map { address($0) } }
}
