internal import MartletJSON
internal import MartletProvider

/// Operations of providers with a login.
extension OpenAPI {
    /// A provider with a login, as the configuration names it.
    package struct Login: Sendable {
        let name: String
        /// Its kind, which says what the body of a login has.
        let kind: String

        package init(name: String, kind: String) { (self.name, self.kind) = (name, kind) }

        /// One of each bundled kind, for the documentation.
        package static let examples = [
            Login(name: "apple", kind: "apple"), Login(name: "company", kind: "oidc"),
            Login(name: "password", kind: "password"), Login(name: "wechat", kind: "wechat"),
        ]

        init(_ provider: ProviderHandle) { self.init(name: provider.name, kind: provider.kind.rawValue) }

        fileprivate var schema: String {
            switch kind {
            case "apple": "AppleLogin"
            case "oidc": "OpenIDLogin"
            case "password": "PasswordLogin"
            case "wechat": "WeChatLogin"
            default: "OtherLogin"
            }
        }

        /// The name as a part of an operation's: `company-eu` is `CompanyEu`.
        fileprivate var operationPart: String {
            name.split { !$0.isASCII || !($0.isLetter || $0.isNumber) }
                .map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
        }
    }

    /// Adds the operations of each login to `paths`, from those for `{provider}`.
    static func withLogins(_ paths: JSONObject, _ logins: [Login]) -> JSONObject {
        var paths = paths
        var names: Set<String> = []
        for (path, operation) in [("/login/{provider}", "login"), ("/link/{provider}", "link")] {
            guard var item = paths[path]?.object, let template = item["post"]?.object else { continue }
            item = JSONObject(members: item.members.filter { $0.name != "post" })
            paths = JSONObject(members: paths.members.filter { $0.name != path })
            for login in logins {
                var post = template
                var id = operation + login.operationPart
                // Names that differ in their separators alone.
                while !names.insert(id).inserted { id += "_" }
                post["operationId"] = .string(id)
                post["requestBody"] = .string(login.schema)
                paths[path.replacing("{provider}", with: login.name)] = ["post": .object(post)]
            }
            if item.members.contains(where: { $0.name != "parameters" }) { paths[path] = .object(item) }
        }
        return paths
    }
}
