package import MartletConfig

/// Paths that the gateway serves itself; they are matched before every configured route.
package struct RouteMount: Sendable {
    /// The name in logs and metrics.
    package let name: String
    /// Host patterns as in a route; empty is any host.
    package let hosts: [String]
    /// A path glob as in a route: `/auth/**`.
    package let path: String
    /// The position for errors.
    package let location: SourceLocation
    /// The maximum bytes of a request body.
    package let bodyLimit: Int

    package init(name: String, hosts: [String], path: String, location: SourceLocation, bodyLimit: Int) {
        self.name = name
        self.hosts = hosts
        self.path = path
        self.location = location
        self.bodyLimit = bodyLimit
    }
}
