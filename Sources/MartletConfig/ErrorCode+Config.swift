public import MartletCore

/// The error codes of this module; `Configuration.md` lists them for operators.
extension ErrorCode {
    /// The configuration was rejected for reasons that were reported one by one.
    public static let configInvalid: ErrorCode = "config.invalid"
    /// The configuration file, or a file that a key names, cannot be read.
    public static let configFileUnreadable: ErrorCode = "config.file_unreadable"
    /// A file that a key names cannot be opened for writing.
    package static let configFileUnwritable: ErrorCode = "config.file_unwritable"
    /// Unsupported or invalid YAML: syntax, encoding, a tag, a merge key, or a second document.
    public static let configYAMLSyntax: ErrorCode = "config.yaml_syntax"
    /// The file, its nesting or its expansion exceeds a limit.
    public static let configTooLarge: ErrorCode = "config.too_large"
    /// A mapping has the same key twice.
    public static let configDuplicateKey: ErrorCode = "config.duplicate_key"
    /// `${VAR}` names a variable that is not set and has no default.
    public static let configUnsetVariable: ErrorCode = "config.unset_variable"
    /// `${` is not followed by a name and `}`.
    public static let configBadVariable: ErrorCode = "config.bad_variable"
    /// A key that this kind of block does not have.
    public static let configUnknownKey: ErrorCode = "config.unknown_key"
    /// A required key is absent.
    public static let configMissingKey: ErrorCode = "config.missing_key"
    /// A value of the wrong type, such as a string instead of a list, or no value at all.
    public static let configWrongType: ErrorCode = "config.wrong_type"
    /// A value of the right type that is not allowed here.
    public static let configBadValue: ErrorCode = "config.bad_value"
    /// Not a duration such as `250ms`, `10s`, `15m`, `1h`, `30d`, or one out of range.
    public static let configBadDuration: ErrorCode = "config.bad_duration"
    /// Not a size such as `512B`, `16KiB`, `10MiB`, or one out of range.
    public static let configBadSize: ErrorCode = "config.bad_size"
    /// Not an address that can be listened on or connected to.
    public static let configBadAddress: ErrorCode = "config.bad_address"
    /// Not a URL of the form that the key requires.
    public static let configBadURL: ErrorCode = "config.bad_url"
    /// Not a path, host, header or name pattern of the form that the key requires.
    public static let configBadPattern: ErrorCode = "config.bad_pattern"
    /// A header that cannot or must not be set or removed.
    public static let configBadHeader: ErrorCode = "config.bad_header"
    /// Keys that exclude each other: a secret both as `x` and as `x_file`, `path` beside `path_regex`, and so on.
    public static let configConflictingKeys: ErrorCode = "config.conflicting_keys"
    /// Two routes, listeners or other entries have the same name.
    public static let configDuplicateName: ErrorCode = "config.duplicate_name"
    /// A provider's `kind` that no plugin provides.
    public static let configUnknownKind: ErrorCode = "config.unknown_kind"
    /// A route names a provider that is not defined.
    public static let configUnknownProvider: ErrorCode = "config.unknown_provider"
    /// A route has two providers that accept the same credentials.
    public static let configAmbiguousProviders: ErrorCode = "config.ambiguous_providers"
    /// A route names an upstream that is not defined.
    public static let configUnknownUpstream: ErrorCode = "config.unknown_upstream"
    /// A route names a rate limit that is not defined.
    package static let configUnknownLimit: ErrorCode = "config.unknown_limit"
    /// A route asks for authentication but no provider is configured.
    public static let configNoProvider: ErrorCode = "config.no_provider"
    /// A key or value that is reserved but not supported by this version.
    public static let configNotSupported: ErrorCode = "config.not_supported"
    /// An unsupported `version`.
    public static let configBadVersion: ErrorCode = "config.bad_version"
    /// Warning: no request can reach this route, because an earlier one matches all of its requests.
    public static let configUnreachableRoute: ErrorCode = "config.unreachable_route"
    /// Warning: no route uses this provider or upstream.
    public static let configUnused: ErrorCode = "config.unused"
    /// Warning: a file with a secret is readable by others than its owner.
    public static let configFileExposed: ErrorCode = "config.file_exposed"
    /// Warning: commands and probes cannot connect to the admin listener.
    package static let configAdminUnreachable: ErrorCode = "config.admin_unreachable"
    /// Warning: allowed, but it weakens security.
    public static let configInsecure: ErrorCode = "config.insecure"
}
