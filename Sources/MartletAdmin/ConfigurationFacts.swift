/// What the running configuration says, for operators: no secrets, and nothing of the files that it names.
package struct ConfigurationFacts: Sendable {
    /// A route: what it matches, who may use it, and where its requests go.
    package struct Route: Sendable {
        package let name: String
        package let hosts: [String]
        package let path: String
        package let methods: [String]
        /// The names of the header fields and of the query parameters that its conditions are about, with `no ` before
        /// those that must not be there. Values may be secrets, and are left out.
        package let headers: [String]
        package let query: [String]
        /// `none`, the names of the accepted providers, or `optional` before them.
        package let auth: String
        /// How many conditions a caller must meet.
        package let conditions: Int
        /// Its upstream, or what it responds itself.
        package let target: String

        package init(
            name: String, hosts: [String], path: String, methods: [String], headers: [String], query: [String],
            auth: String, conditions: Int, target: String
        ) {
            (self.headers, self.query) = (headers, query)
            (self.name, self.hosts, self.path, self.methods) = (name, hosts, path, methods)
            (self.auth, self.conditions, self.target) = (auth, conditions, target)
        }
    }

    /// A listener with its actual address.
    package struct Listener: Sendable {
        package let address: String
        /// `public` or `admin`.
        package let role: String
        package let isSecure: Bool

        package init(address: String, role: String, isSecure: Bool) {
            (self.address, self.role, self.isSecure) = (address, role, isSecure)
        }
    }

    /// SHA-256 of the configuration's text, in hexadecimal digits.
    package let digest: String
    package let routes: [Route]
    package let listeners: [Listener]

    package init(digest: String = "", routes: [Route] = [], listeners: [Listener] = []) {
        (self.digest, self.routes, self.listeners) = (digest, routes, listeners)
    }
}
