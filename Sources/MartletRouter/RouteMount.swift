package import MartletConfig

/// Paths that the gateway answers itself; they come before every configured route.
package struct RouteMount: Sendable {
    /// What logs and metrics call it.
    package let name: String
    /// As a route's; empty is any host.
    package let hosts: [String]
    /// As a route's: `/auth/**`.
    package let path: String
    /// What to point at where one of these is wrong.
    package let location: SourceLocation
    /// The most bytes that a request's body may have.
    package let bodyLimit: Int

    package init(name: String, hosts: [String], path: String, location: SourceLocation, bodyLimit: Int) {
        self.name = name
        self.hosts = hosts
        self.path = path
        self.location = location
        self.bodyLimit = bodyLimit
    }
}
