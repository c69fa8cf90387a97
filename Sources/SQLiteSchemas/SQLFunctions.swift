/// What is known of SQL functions by their names, in lower case.
package enum SQLFunctions {
  /// Functions that read or write files, load code, show memory, or run what they are given. SQLite, its shell and its
  /// extensions have them.
  package static let withEffects: Set<String> = [
    "load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "fsdir", "lsdir", "lsmode", "zipfile", "eval",
    "exec", "shell", "system", "carray", "remember", "nextchar", "btreeinfo", "dbstat", "bytecode", "tables_used",
    "stmtrand", "shell_add_schema", "shell_putsnl", "shell_module_schema",
  ]

  /// The functions of SQLite itself that compute a value and do nothing else, of all versions and build options.
  /// See <https://sqlite.org/lang_corefunc.html> and the pages that follow it.
  package static let pure: Set<String> = core.union(aggregates).union(dates).union(mathematics).union(documents)

  private static let core: Set<String> = [
    "abs", "changes", "char", "coalesce", "concat", "concat_ws", "format", "glob", "hex", "if", "ifnull", "iif",
    "instr",
    "last_insert_rowid", "length", "like", "likelihood", "likely", "lower", "ltrim", "match", "nullif", "octet_length",
    "printf", "quote", "random", "randomblob", "replace", "round", "rtrim", "sign", "soundex", "substr", "substring",
    "total_changes", "trim", "typeof", "unhex", "unicode", "unistr", "unistr_quote", "unlikely", "upper", "zeroblob",
    // Of full-text tables, where their own queries call them.
    "bm25", "highlight", "snippet",
  ]
  private static let aggregates: Set<String> = [
    "avg", "count", "group_concat", "max", "median", "min", "percentile", "percentile_cont", "percentile_disc",
    "string_agg", "sum", "total", "cume_dist", "dense_rank", "first_value", "lag", "last_value", "lead", "nth_value",
    "ntile", "percent_rank", "rank", "row_number",
  ]
  private static let dates: Set<String> = [
    "current_date", "current_time", "current_timestamp", "date", "datetime", "julianday", "strftime", "time",
    "timediff",
    "unixepoch",
  ]
  private static let mathematics: Set<String> = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "ceiling", "cos", "cosh", "degrees", "exp",
    "floor", "ln", "log", "log10", "log2", "mod", "pi", "pow", "power", "radians", "sin", "sinh", "sqrt", "tan", "tanh",
    "trunc",
  ]
  private static let documents: Set<String> = [
    "->", "->>", "json", "json_array", "json_array_insert", "json_array_length", "json_error_position", "json_extract",
    "json_group_array", "json_group_object", "json_insert", "json_object", "json_patch", "json_pretty", "json_quote",
    "json_remove", "json_replace", "json_set", "json_type", "json_valid", "jsonb", "jsonb_array", "jsonb_array_insert",
    "jsonb_extract", "jsonb_group_array", "jsonb_group_object", "jsonb_insert", "jsonb_object", "jsonb_patch",
    "jsonb_remove", "jsonb_replace", "jsonb_set",
  ]
}
